/**
 * Bodies of Chat Completions that are written in words of Responses or Messages, and mean them. Cursor sends three kinds: `input` instead
 * of messages; tools of three forms in one list; and for models named after Claude, tools, choices and blocks of Messages. All are
 * answered as chat. Loaded by the first such body. Sources: LiteLLM #34029 and CLIProxyAPI's tests, which quote Cursor's bodies.
 */
import * as z from 'zod/mini';
import { type ChatMessage, ChatRequest, chatFieldNames, splitKnown } from '../../wire/canonical-call.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { fieldPathOf, walkMedia, findMissingMedia } from '../../wire/media-walk.ts';
import {
  asRecord,
  isRecord,
  listIn,
  recordsIn,
  textIn,
  removeNulls,
  type JsonRecord,
} from '../../wire/json.ts';
import type { EndpointRequest } from '../endpoint.ts';
import { conversationOf } from '../messages/conversation.ts';
import { ToolNames } from '../messages/request.ts';
import { parseRequest } from '../parse-request.ts';
import { readContentPart } from '../responses/input.ts';
import { chatFields, ResponsesRequest, selectServedFields, findUnknownFields } from '../responses/request.ts';
import { translateRequest } from '../responses/responses-endpoint.ts';
import { endpointRoutes } from '../routes.ts';

type ChatReading = Omit<EndpointRequest, 'renderer'>;

/** @param body of which `mayBeOtherForm` holds. Throws InvalidRequest. */
export function readOtherForm(body: JsonRecord): ChatReading {
  const { tools, tool_choice: choice } = body;
  const written = {
    ...body,
    ...(Array.isArray(tools) && { tools: tools.map(nestTool) }),
    ...(isRecord(choice) && { tool_choice: nestChoice(choice) }),
  };
  return hasInput(body) ? readInputForm(written) : readMessagesForm(written);
}

/** An empty one beside messages is none. */
function hasInput({ input, messages }: JsonRecord): boolean {
  const isEmpty = input === '' || (Array.isArray(input) && input.length === 0);
  return (input ?? undefined) !== undefined && !(isEmpty && listIn(messages).length > 0);
}

// `input`: the reader of Responses reads it. Fields that only chat has are chat's.

function readInputForm(body: JsonRecord): ChatReading {
  if (listIn(body['messages']).length > 0)
    throw new InvalidRequest('invalid_value', 'input', "Send either 'messages' or 'input', not both.");
  const request = parseRequest(ResponsesRequest, body);
  const { chat, call: ofForm, declared, placed, ...read } = translateRequest(request);
  if (ofForm.compacts)
    throw new InvalidRequest(
      'unsupported_input_item',
      'input',
      'Use POST /v1/responses to compact a conversation: only its answer can contain the summary.',
    );
  for (const [sent, { name }] of declared)
    if (sent !== name)
      throw new InvalidRequest(
        'invalid_value',
        'tools',
        `The name of a tool must be 1 to 64 of the characters A-Z a-z 0-9 _ -, in no namespace: ${JSON.stringify(name)} is not.`,
      );
  const { messages: _none, ...rest } = findUnknownFields(request);
  const own = Object.entries(rest).filter(([field]) => chatFieldNames.has(field));
  const unknown = Object.entries(rest).filter(([field]) => !chatFieldNames.has(field));
  const { stream, stream_options: options } = body;
  return {
    call: {
      // Upstreams that speak Responses get what no other one knows, as its client wrote it.
      form: endpointRoutes.responses.name,
      request: parseRequest(
        ChatRequest,
        removeNulls({ ...Object.fromEntries(own), ...chat, stream, stream_options: options }),
      ),
      unknown: Object.fromEntries(unknown),
      served: selectServedFields(request),
      ...ofForm,
    },
    placed,
    ...read,
  };
}

// Messages with words of the others in them. What chat itself says counts before them.

function readMessagesForm(written: JsonRecord): ChatReading {
  const { system, reasoning, text, max_output_tokens: limit, input: _empty, ...body } = written;
  const { effort, summary: _shown, generate_summary: _older, ...beside } = asRecord(reasoning);
  const isEffort = isRecord(reasoning) && (typeof effort === 'string' || Object.keys(beside).length === 0);
  const isForm = isRecord(text) && (text['format'] ?? text['verbosity'] ?? undefined) !== undefined;
  const words = parseRequest(
    otherWords,
    removeNulls({
      max_output_tokens: limit,
      reasoning: isEffort ? removeNulls({ effort }) : undefined,
      text: isForm ? text : undefined,
    }),
  );
  const told = instructions(system);
  const { messages } = body;
  const lost = new Set<string>();
  const { request, unknown } = splitKnown(
    parseRequest(ChatRequest, {
      ...removeNulls({
        // Other vendors give these names another meaning, and OpenRouter's `reasoning` has more fields than the effort.
        reasoning: !isEffort ? reasoning : Object.keys(beside).length > 0 ? beside : undefined,
        text: isForm ? undefined : text,
        max_completion_tokens: words.max_output_tokens,
        ...chatFields({ ...words, model: '', input: '' }),
      }),
      ...removeNulls(body),
      messages: Array.isArray(messages)
        ? messages.flatMap((one, i) => splitMessage(one, { i, lost }))
        : messages,
    }),
  );
  const all = { ...request, messages: [...told, ...request.messages] };
  const lostMedia = findMissingMedia(walkMedia({ messages }), all.messages).map(fieldPathOf);
  const call = { form: endpointRoutes.chat.name, request: all, unknown, messageFields: [...lost], lostMedia };
  return { call };
}

/** The instructions of Messages: a text, or blocks of text. */
function instructions(system: unknown): ChatMessage[] {
  if (system === undefined || system === null || system === '') return [];
  const blocks = recordsIn(system);
  if (typeof system === 'string') return [{ role: 'system', content: system }];
  if (blocks.length === 0 || !blocks.every(({ type, text }) => type === 'text' && typeof text === 'string'))
    throw new InvalidRequest('invalid_type', 'system', "'system' must be a text or blocks of text.");
  return [{ role: 'system', content: blocks.map((block) => Object.assign({ type: 'text' }, block)) }];
}

const otherWords = z.pick(ResponsesRequest, { max_output_tokens: true, reasoning: true, text: true });

/**
 * Results of tools become messages of their own, before what else the message says.
 * @param lost gets the names of what chat has no form for
 */
function splitMessage(message: unknown, { i, lost }: { i: number; lost: Set<string> }): unknown[] {
  const { content, ...rest } = asRecord(message);
  if (!Array.isArray(content) || content.every((part) => kindOf(part) === undefined)) return [message];
  const results: JsonRecord[] = [];
  const calls: unknown[] = [];
  const parts = content.flatMap((part: unknown, j): unknown[] => {
    const param = `messages[${i}].content[${j}]`;
    const kind = kindOf(part);
    if (kind === undefined) return [part];
    const block = asRecord(part);
    const marked = removeNulls({ cache_control: block['cache_control'] });
    if (kind === 'part') return [{ ...readContentPart(block, param), ...marked }];
    const role = kind === 'called' ? 'assistant' : 'user';
    const content = [{ ...block, type: textIn(block['type']) }];
    const read = conversationOf({ model: '', messages: [{ role, content }] }, new ToolNames([]));
    if (read.only) throw new InvalidRequest('unsupported_content_type', `${param}.type`, read.only.message);
    for (const name of read.lost) lost.add(name);
    const [one] = read.messages;
    if (one?.role === 'tool') results.push({ ...one, ...marked });
    calls.push(...(one?.tool_calls ?? []));
    return one?.role === 'user' ? listIn(one.content).map((each) => Object.assign({}, each, marked)) : [];
  });
  const called = [...listIn(rest['tool_calls']), ...calls];
  if (parts.length === 0 && called.length === 0 && results.length > 0) return results;
  const said = parts.length > 0 ? parts : called.length > 0 ? null : '';
  return [...results, { ...rest, content: said, ...(called.length > 0 && { tool_calls: called }) }];
}

const responsesParts = new Set<unknown>(['input_text', 'output_text', 'input_image', 'input_file']);
const saidBlocks = new Set<unknown>(['tool_result', 'image', 'document']);
const calledBlocks = new Set<unknown>(['tool_use', 'thinking', 'redacted_thinking']);

/** The form of a part: of Responses, or a block of Messages of a user or of the model. */
function kindOf(part: unknown): 'part' | 'said' | 'called' | undefined {
  const { type, source } = asRecord(part);
  if (responsesParts.has(type)) return 'part';
  if (calledBlocks.has(type)) return 'called';
  return saidBlocks.has(type) && (type === 'tool_result' || isRecord(source)) ? 'said' : undefined;
}

// Tools and the choice among them, as chat nests them.

const callersTypes = new Set<unknown>([undefined, null, 'function', 'custom']);

/** A tool that its caller runs, by its name where Responses and Messages have it. */
const isFlat = ({ type, name }: JsonRecord): boolean => callersTypes.has(type) && typeof name === 'string';

/** A grammar as Responses has it, which Cursor also puts into tools that are nested. */
const isFlatGrammar = ({ custom }: JsonRecord): boolean =>
  asRecord(asRecord(custom)['format'])['definition'] !== undefined;

/** Any other tool stays as it is. */
function nestTool(tool: unknown): unknown {
  if (!isRecord(tool) || !(isFlat(tool) || isFlatGrammar(tool))) return tool;
  const { type, name, description, parameters, input_schema: schema, strict, format, ...rest } = tool;
  const { function: called, custom, ...beside } = rest;
  const kind = type === 'custom' && schema === undefined ? 'custom' : 'function';
  const flat =
    kind === 'custom'
      ? { name, description, format }
      : { name, description, parameters: parameters ?? schema, strict };
  const fields: JsonRecord = { ...removeNulls(flat), ...asRecord(kind === 'custom' ? custom : called) };
  const { type: syntaxOf, grammar, ...written } = asRecord(fields['format']);
  if (syntaxOf === 'grammar' && !isRecord(grammar)) fields['format'] = { type: 'grammar', grammar: written };
  return { ...beside, type: kind, [kind]: fields };
}

function nestChoice(choice: JsonRecord): unknown {
  const { type, name } = choice;
  if (type === 'any') return 'required';
  if (type === 'auto' || type === 'none') return type;
  if (typeof name !== 'string' || !choiceTypes.has(type)) return choice;
  const kind = type === 'custom' ? 'custom' : 'function';
  return { type: kind, [kind]: { name } };
}

const choiceTypes = new Set<unknown>(['function', 'custom', 'tool']);
