import type { ScriptTool, Transcript } from '../script/script.ts';
import { isObject, objectsIn, textIn } from '../script/vendor.ts';

/** A Responses request whose outer form is right; the rules look at the rest. */
export interface ResponsesCall {
  headers: Record<string, string>;
  body: Record<string, unknown>;
  model: string;
  /** Whose encrypted content this is: the bearer token stands for it. */
  organization: string;
  items: InputItem[];
}

export interface InputItem extends Record<string, unknown> {
  type: string;
}

export function responsesCall(
  headers: Record<string, string>,
  body: Record<string, unknown>,
  organization: string,
): ResponsesCall {
  const input = body['input'];
  const items =
    typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : objectsIn(input);
  return {
    headers,
    body,
    model: textIn(body['model']),
    organization,
    items: items.map((item) => Object.assign({}, item, { type: textIn(item['type'] ?? 'message') })),
  };
}

export const isCall = ({ type }: InputItem): boolean =>
  type === 'function_call' || type === 'custom_tool_call';
export const isOutput = ({ type }: InputItem): boolean =>
  type === 'function_call_output' || type === 'custom_tool_call_output';
const isUser = ({ type, role }: InputItem): boolean => type === 'message' && role === 'user';

const partsText = (content: unknown): string =>
  typeof content === 'string'
    ? content
    : objectsIn(content)
        .map((part) => textIn(part['text']))
        .join(' ');

export function transcriptOf({ body, items }: ResponsesCall): Transcript {
  const lastUser = items.findLastIndex(isUser);
  const after = items.slice(lastUser + 1);
  const names = new Map(
    after.filter(isCall).map(({ call_id: id, name }) => [textIn(id), textIn(name)] as const),
  );
  const text = isObject(body['text']) ? body['text'] : {};
  const { schema } = isObject(text['format']) ? text['format'] : {};
  return {
    said: partsText(items[lastUser]?.['content']),
    // Calls of one turn stand together.
    turns: after.filter((item, index) => isCall(item) && !(index > 0 && isCall(after[index - 1]!))).length,
    results: after
      .filter(isOutput)
      .map(({ call_id: id, output }) => ({ name: names.get(textIn(id)) ?? '', text: partsText(output) })),
    ...toolsIn(body),
    ...(body['parallel_tool_calls'] === false && { single: true }),
    ...(isObject(schema) && { schema }),
  };
}

function toolsIn({
  tools,
  tool_choice: choice,
}: Record<string, unknown>): Pick<Transcript, 'tools' | 'choice'> {
  const declared = objectsIn(tools).flatMap((tool) => callable(tool));
  if (choice === 'none' || choice === 'required') return { tools: declared, choice };
  if (!isObject(choice)) return { tools: declared, choice: 'auto' };
  if (choice['type'] === 'allowed_tools') {
    const allowed = new Set(objectsIn(choice['tools']).map((tool) => tool['name']));
    return {
      tools: declared.filter(({ name }) => allowed.has(name)),
      choice: choice['mode'] === 'required' ? 'required' : 'auto',
    };
  }
  return { tools: declared, choice: { name: textIn(choice['name']) } };
}

/** Hosted tools are the vendor's to call. */
function callable(tool: Record<string, unknown>, namespace?: string): ScriptTool[] {
  const { type, name, parameters, tools } = tool;
  if (type === 'namespace') return objectsIn(tools).flatMap((inner) => callable(inner, textIn(name)));
  if (type !== 'function' && type !== 'custom') return [];
  return [
    {
      name: textIn(name),
      custom: type === 'custom',
      ...(isObject(parameters) && { parameters }),
      ...(namespace !== undefined && { namespace }),
    },
  ];
}

/** Instructions, tools, then items: what a cache of prefixes sees. */
export const promptParts = ({ body, items }: ResponsesCall): string[] => [
  textIn(body['instructions']),
  JSON.stringify(body['tools'] ?? []),
  ...items.map((item) => JSON.stringify(item)),
];
