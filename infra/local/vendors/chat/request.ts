import type { JsonSchema } from '../../demo/request.ts';
import type { ScriptTool, Transcript } from '../script/script.ts';
import { isObject, objectsIn, textIn } from '../script/vendor.ts';

/** A chat request whose outer form is right; the rules look at the rest. */
export interface ChatCall {
  headers: Record<string, string>;
  body: Record<string, unknown>;
  model: string;
  messages: ChatMessage[];
}

export interface ChatMessage extends Record<string, unknown> {
  role: string;
  calls: ChatToolCall[];
}

export interface ChatToolCall {
  id: string;
  name: string;
  input: string;
  /** The call as it was sent. */
  sent: Record<string, unknown>;
}

export function chatCall(headers: Record<string, string>, body: Record<string, unknown>): ChatCall {
  const messages = objectsIn(body['messages']).map((message) =>
    Object.assign({}, message, {
      role: textIn(message['role']),
      calls: objectsIn(message['tool_calls']).map(callIn),
    }),
  );
  return { headers, body, model: textIn(body['model']), messages };
}

function callIn(sent: Record<string, unknown>): ChatToolCall {
  const { name, arguments: input, input: free } = inner(sent['function'] ?? sent['custom']);
  return { id: textIn(sent['id']), name: textIn(name), input: textIn(input ?? free), sent };
}

const inner = (value: unknown): Record<string, unknown> => (isObject(value) ? value : {});

export const contentText = (content: unknown): string =>
  typeof content === 'string'
    ? content
    : objectsIn(content)
        .map((part) => textIn(part['text']))
        .join(' ');

export function transcriptOf({ body, messages }: ChatCall): Transcript {
  const lastUser = messages.findLastIndex(({ role }) => role === 'user');
  const after = messages.slice(lastUser + 1);
  const names = new Map(after.flatMap(({ calls }) => calls.map(({ id, name }) => [id, name])));
  return {
    said: contentText(messages[lastUser]?.['content']),
    turns: after.filter(({ calls }) => calls.length > 0).length,
    results: after
      .filter(({ role }) => role === 'tool')
      .map(({ tool_call_id: id, content }) => ({
        name: names.get(textIn(id)) ?? '',
        text: contentText(content),
      })),
    tools: objectsIn(body['tools']).map(toolIn),
    choice: choiceIn(body['tool_choice']),
    stops: [body['stop'] ?? []].flat().map(textIn),
    ...(body['parallel_tool_calls'] === false && { single: true }),
    ...schemaIn(body['response_format']),
  };
}

function toolIn(tool: Record<string, unknown>): ScriptTool {
  const { name, parameters } = inner(tool['function'] ?? tool['custom']);
  return {
    name: textIn(name),
    ...(isObject(parameters) && { parameters }),
    custom: tool['type'] === 'custom',
  };
}

function choiceIn(choice: unknown): Transcript['choice'] {
  if (choice === 'none' || choice === 'required') return choice;
  const { name } = inner(inner(choice)['function'] ?? inner(choice)['custom']);
  return name === undefined ? 'auto' : { name: textIn(name) };
}

function schemaIn(format: unknown): { schema?: JsonSchema } {
  const { schema } = inner(inner(format)['json_schema']);
  return isObject(schema) ? { schema } : {};
}

/** The highest number of tokens that the request allows. */
export const tokenLimit = ({ body }: ChatCall): number =>
  Number(body['max_completion_tokens'] ?? body['max_tokens'] ?? Infinity);

/** Tools, then messages: what a cache of prefixes sees. */
export const promptParts = ({ body, messages }: ChatCall): string[] => [
  JSON.stringify(body['tools'] ?? []),
  ...messages.map(({ calls: _calls, ...message }) => JSON.stringify(message)),
];

export const secretOf = (headers: Record<string, string>): string =>
  /^Bearer (.+)$/.exec(headers['authorization'] ?? '')?.[1] ?? '';
