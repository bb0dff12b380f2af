/** Translates the input items of a Responses request to messages of the canonical call. */
import type { ChatMessage, ChatToolCall, ChatContentPart } from '../../wire/canonical-call.ts';
import type { PlacedItem, SealedState, SummaryOpener } from '../endpoint.ts';
import type { InputItem } from './request.ts';
import { InvalidRequest, StorageNotAllowed } from '../../wire/invalid-request.ts';
import { sealPrefix } from '../../wire/ids.ts';
import { carriedTypes, ItemsFound } from './carried-items.ts';
import {
  compactionTypes,
  writeLostTurnsNote,
  refuseItemsAfter,
  summarize,
  writeSummaryRequest,
  triggerType,
} from './compaction.ts';
import { checkNameLength, flattenToolName } from './tools.ts';
import type { DeclaredTool } from './answer-items.ts';
import { isRecord, jsonText, type JsonRecord } from '../../wire/json.ts';

export const callTypes = new Set(['function_call', 'custom_tool_call']);
export const outputTypes = new Set(['function_call_output', 'custom_tool_call_output']);
const roles = new Set(['system', 'developer', 'user', 'assistant']);

/** The type of an item. An item without a type but with a role is a message. */
export const itemType = (item: InputItem): string =>
  item.type ?? (typeof item.role === 'string' ? 'message' : '');

interface ConvertedInput {
  messages: ChatMessage[];
  /** The sealed states that came back, by the assistant message of their turn. */
  sealed: Map<ChatMessage, SealedState>;
  /** Encrypted items of another provider were left out. A refusal would end the session: clients send them with every turn. */
  foreignLeftOut: boolean;
  found: ItemsFound;
}

interface ItemContext {
  declared: ReadonlyMap<string, DeclaredTool>;
  /** Stored items that are not read yet belong to them, with calls that outputs are for and tools that calls are of. */
  isPart: boolean;
  summaryOf?: SummaryOpener | undefined;
}

/**
 * Converts Responses items to chat messages. Calls and the assistant messages next to them become one assistant
 * message. Their outputs follow it in the order of the calls, wherever they are in the input. Throws InvalidRequest.
 */
export function translateInput(items: readonly PlacedItem[], context: ItemContext): ConvertedInput {
  const outputs = collectOutputs(items);
  const messages: ChatMessage[] = [];
  const sealed = new Map<ChatMessage, SealedState>();
  const found = new ItemsFound();
  let foreignLeftOut = false;
  let turn: Turn | undefined;
  /** Tools that were added while a turn is open: before it, they would change what its reasoning stands on. */
  const added: JsonRecord[] = [];
  const closeTurn = (): void => {
    for (const one of turn?.messages({ outputs, sealed, found }) ?? []) messages.push(one);
    turn = undefined;
    for (const item of added.splice(0)) messages.push(...found.add(item, messages.at(-1)));
  };
  for (const placed of items) {
    const { item, param } = placed;
    const type = itemType(item);
    const said = type === 'message' ? message(item, param) : undefined;
    if (said?.role === 'assistant') (turn ??= new Turn()).say(said);
    else if (type === 'reasoning') {
      const state = readEncryptedState(placed);
      if (state === 'foreign') foreignLeftOut = true;
      else (turn ??= new Turn()).seal(state);
    } else if (callTypes.has(type))
      (turn ??= new Turn()).call(found.noteAsyncCall(item, toolCall(item, param, context)));
    // Calls that are made at once stay one turn.
    else if (type === 'additional_tools' && turn) added.push(item);
    else {
      closeTurn();
      found.came(item, messages.at(-1));
      if (said) messages.push(said);
      else if (compactionTypes.has(type)) {
        const compacted = readCompactedTurns(placed, context, found);
        if (compacted) messages.push(compacted.message);
        else foreignLeftOut = true;
        if (compacted?.seal) sealed.set(compacted.message, compacted.seal);
      } else if (type === triggerType) messages.push(...readSummaryRequest(placed, items, found));
      else if (carriedTypes.includes(type)) messages.push(...found.add(item, messages.at(-1)));
      else if (!outputTypes.has(type)) throw createUnsupported(item, param);
    }
  }
  closeTurn();
  if (!context.isPart) refuseOrphans(outputs);
  return { messages, sealed, foreignLeftOut, found };
}

/** Reads the summary of a compaction item. Returns nothing if another provider wrote it, since no upstream here can read it. */
function readCompactedTurns(
  placed: PlacedItem,
  { summaryOf }: ItemContext,
  found: ItemsFound,
): { message: ChatMessage; seal?: SealedState | undefined } | undefined {
  const { item, param } = placed;
  const { encrypted_content: text } = item;
  if (typeof text !== 'string' || !text.startsWith(sealPrefix)) return undefined;
  const summary = summaryOf?.(text, `${param}.encrypted_content`);
  if (summary !== undefined) return { message: summarize(summary) };
  const carried = { type: 'compaction', encrypted_content: text };
  const seal = readEncryptedState(placed);
  return {
    message: found.addAs(writeLostTurnsNote(), item, carried),
    ...(seal !== 'foreign' && { seal }),
  };
}

/** The request of an earlier turn is part of what is stored of it. */
function readSummaryRequest(
  placed: PlacedItem,
  items: readonly PlacedItem[],
  found: ItemsFound,
): ChatMessage[] {
  const isLast = placed === items.at(-1);
  if (!isLast && !placed.stored) throw refuseItemsAfter(placed.param);
  return isLast ? [found.addAs(writeSummaryRequest(), placed.item, { type: triggerType })] : [];
}

/**
 * Collects the outputs by call id in reverse order, so that `pop` takes the first: `shift` takes a second for 40,000. An id may have
 * several outputs, because some upstreams reuse ids.
 */
function collectOutputs(items: readonly PlacedItem[]): OutputQueues {
  const outputs = items.flatMap(({ item, param }): CallOutput[] => {
    if (!outputTypes.has(itemType(item))) return [];
    const callId = readRequiredText(item, 'call_id', param);
    return [{ callId, parts: readContentParts(item['output'], `${param}.output`), param, item }];
  });
  const queues = Map.groupBy(outputs, ({ callId }) => callId);
  for (const queue of queues.values()) queue.reverse();
  return queues;
}

function refuseOrphans(queues: OutputQueues): void {
  const orphan = [...queues.values()].find(({ length }) => length > 0)?.at(-1);
  if (orphan === undefined) return;
  throw new InvalidRequest(
    'invalid_value',
    `${orphan.param}.call_id`,
    `The input has no call with the call_id ${JSON.stringify(orphan.callId.slice(0, 60))} for this output.`,
  );
}

/** `foreign`: no upstream of the relay can read it. Reasoning without encrypted content means nothing to a model. */
function readEncryptedState({ item, param, stored }: PlacedItem): SealedState | 'foreign' | undefined {
  const { encrypted_content: text, id } = item;
  if (text === undefined || text === null || text === '') return undefined;
  if (typeof text !== 'string' || !text.startsWith(sealPrefix)) return 'foreign';
  return {
    text,
    // The item of a stored seal was checked when it was stored, and may have got another id then.
    itemId: typeof id === 'string' && !stored ? id : undefined,
    param: `${param}.encrypted_content`,
    ...(stored && { stored }),
  };
}

function toolCall(item: InputItem, param: string, context: ItemContext): ChatToolCall {
  const custom = itemType(item) === 'custom_tool_call';
  const text = jsonText(item[custom ? 'input' : 'arguments']);
  const id = readRequiredText(item, 'call_id', param);
  const name = readToolName(item, param, context);
  if (custom) return { id, type: 'custom', custom: { name, input: text } };
  return { id, type: 'function', function: { name, arguments: text === '' ? '{}' : text } };
}

/** The name of the called tool. A call without a name is accepted only if exactly one tool is declared. */
function readToolName(item: InputItem, param: string, { declared, isPart }: ItemContext): string {
  const { name, namespace } = item;
  checkNameLength({ name, namespace }, param);
  if (typeof name === 'string' && name !== '') return flattenToolName(name, namespace);
  const [only] = declared.keys();
  if (only !== undefined && declared.size === 1) return only;
  return isPart ? '' : readRequiredText(item, 'name', param);
}

function message(item: InputItem, param: string): ChatMessage {
  const role = item.role ?? '';
  if (!roles.has(role))
    throw new InvalidRequest(
      'invalid_value',
      `${param}.role`,
      `'${param}.role' must be system, developer, user or assistant.`,
    );
  const { name, phase } = item;
  return {
    role: role === 'user' || role === 'assistant' ? role : 'system',
    content: contentOfParts(readContentParts(item['content'], `${param}.content`), role),
    ...(typeof name === 'string' && name !== '' && { name }),
    ...(role === 'assistant' && typeof phase === 'string' && { phase }),
  };
}

function readRequiredText(item: InputItem, field: string, param: string): string {
  const value = item[field];
  if (typeof value === 'string' && value !== '') return value;
  throw new InvalidRequest(
    'missing_required_parameter',
    `${param}.${field}`,
    `Missing required parameter: '${param}.${field}'.`,
  );
}

function createUnsupported(item: InputItem, param: string): InvalidRequest {
  if (item.type === 'item_reference')
    return new StorageNotAllowed(
      'unsupported_input_item',
      `${param}.type`,
      `"item_reference" is not supported as an input item: responses are not stored for this key. Send the item itself, with store: false.`,
    );
  const shown =
    typeof item.type === 'string' ? JSON.stringify(item.type.slice(0, 60)) : 'an item without type and role';
  return new InvalidRequest(
    'unsupported_input_item',
    `${param}.type`,
    `${shown} is not supported as an input item: message, function_call, function_call_output, custom_tool_call, custom_tool_call_output, reasoning and additional_tools are.`,
  );
}

interface CallOutput {
  callId: string;
  parts: ChatContentPart[];
  param: string;
  item: InputItem;
}

type OutputQueues = ReadonlyMap<string, CallOutput[]>;

interface TurnContext extends Pick<ConvertedInput, 'sealed' | 'found'> {
  outputs: OutputQueues;
}

/**
 * Assistant messages, calls and reasoning that stand together in the input. They are one turn of the model, in any
 * order, because clients change it.
 */
class Turn {
  readonly #said: ChatMessage[] = [];
  readonly #calls: ChatToolCall[] = [];
  #sealed: SealedState | undefined;

  say(message: ChatMessage): void {
    this.#said.push(message);
  }

  call(call: ChatToolCall): void {
    this.#calls.push(call);
  }

  /** The last state counts: it is the whole one. */
  seal(sealed: SealedState | undefined): void {
    this.#sealed = sealed ?? this.#sealed;
  }

  /**
   * The turn as chat messages: one assistant message if it has calls or a state, then a tool message for each call that
   * has an output. Adds the state to `sealed`.
   */
  messages({ outputs, sealed, found }: TurnContext): ChatMessage[] {
    const whole = this.#calls.length > 0 || (this.#sealed !== undefined && this.#said.length > 0);
    if (!whole) return this.#said;
    const message = this.#message();
    if (this.#sealed) sealed.set(message, this.#sealed);
    const results = this.#calls.flatMap((call): ChatMessage[] => {
      const output = outputs.get(call.id ?? '')?.pop();
      if (!output) return [];
      const content = contentOfParts(output.parts, 'tool');
      return [found.noteAsyncResult(call, output.item, { role: 'tool', tool_call_id: call.id, content })];
    });
    return [message, ...results];
  }

  #message(): ChatMessage {
    const parts = this.#said.flatMap(({ content }) => partsOfContent(content));
    const content = this.#sealed ? readExactContent(parts) : contentOfParts(parts);
    // A state has the phases of the earlier ones.
    const { phase } = this.#said.at(-1) ?? {};
    return {
      ...this.#said[0],
      ...(phase !== undefined && { phase }),
      role: 'assistant',
      content: content === '' ? null : content,
      ...(this.#calls.length > 0 && { tool_calls: this.#calls }),
    };
  }
}

/** The texts as the model wrote them: a state counts their characters, and vendors compare them. */
function readExactContent(parts: ChatContentPart[]): string | ChatContentPart[] {
  if (parts.some(({ type }) => type !== 'text')) return parts;
  return parts.map(({ text }) => text ?? '').join('');
}

const textTypes = new Set(['input_text', 'output_text', 'text']);

/** Converts Responses content to chat parts. `param`: its path, such as `input[2].content`. Throws InvalidRequest. */
function readContentParts(content: unknown, param: string): ChatContentPart[] {
  if (content === undefined || content === null) return [];
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  if (!Array.isArray(content))
    throw new InvalidRequest('invalid_type', param, `'${param}' must be a string or an array of parts.`);
  return content.map((part: unknown, i) => keepBreakpoint(part, readContentPart(part, `${param}[${i}]`)));
}

/** Keeps the client's breakpoint, because Chat Completions has the field, too. */
const keepBreakpoint = (part: unknown, read: ChatContentPart): ChatContentPart =>
  isRecord(part) && isRecord(part[breakpoint]) ? { ...read, [breakpoint]: part[breakpoint] } : read;
const breakpoint = 'prompt_cache_breakpoint';

/** Throws InvalidRequest. */
export function readContentPart(part: unknown, param: string): ChatContentPart {
  const type = isRecord(part) ? part['type'] : undefined;
  if (!isRecord(part) || typeof type !== 'string')
    throw new InvalidRequest('invalid_type', `${param}.type`, `'${param}' must be a part with a type.`);
  if (textTypes.has(type)) return { type: 'text', text: textField(part, 'text', param) };
  if (type === 'refusal') return { type: 'text', text: textField(part, 'refusal', param) };
  if (type === 'input_image') return readImage(part, param);
  if (type === 'input_file') return readFile(part, param);
  throw new InvalidRequest(
    'unsupported_content_type',
    `${param}.type`,
    `${JSON.stringify(type.slice(0, 60))} parts are not supported here: input_text, output_text, input_image, input_file and refusal are.`,
  );
}

function textField(part: JsonRecord, field: string, param: string): string {
  const text = part[field];
  if (typeof text === 'string') return text;
  throw new InvalidRequest('invalid_type', `${param}.${field}`, `'${param}.${field}' must be a string.`);
}

function readImage(part: JsonRecord, param: string): ChatContentPart {
  const url = part['image_url'];
  const detail = part['detail'];
  if (typeof url !== 'string' || url === '') throw missing(`${param}.image_url`, 'a URL or a data URL');
  return { type: 'image_url', image_url: { url, ...(typeof detail === 'string' && { detail }) } };
}

function readFile(part: JsonRecord, param: string): ChatContentPart {
  const { file_data: data, file_url: url, filename } = part;
  const name = typeof filename === 'string' && filename !== '' ? { filename } : {};
  if (typeof data === 'string' && data !== '') return { type: 'file', file: { file_data: data, ...name } };
  if (typeof url === 'string' && url !== '') return { type: 'file', file: { file_url: url, ...name } };
  throw missing(`${param}.file_data`, "a data URL, or there must be a 'file_url'");
}

const missing = (param: string, wanted: string): InvalidRequest =>
  new InvalidRequest(
    'missing_required_parameter',
    param,
    `'${param}' must be ${wanted}: the relay keeps no files.`,
  );

const joinTextParts = (parts: readonly ChatContentPart[]): string =>
  parts.flatMap((part) => (part.type === 'text' ? [part.text ?? ''] : [])).join('\n');

/**
 * The content of a chat message. Text alone becomes a plain string, because every upstream accepts that;
 * several texts in a user's message stay separate parts.
 */
function contentOfParts(parts: ChatContentPart[], role = 'assistant'): string | ChatContentPart[] {
  const textOnly = parts.every((part) => part.type === 'text' && !(breakpoint in part));
  return textOnly && (parts.length < 2 || role !== 'user') ? joinTextParts(parts) : parts;
}

/** The content of a chat message as parts. An empty text gives no part. */
function partsOfContent(content: ChatMessage['content']): ChatContentPart[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
  return content ?? [];
}
