/** Converts canonical messages to the input items of Responses. Depends only on each message and those before it. */
import {
  type CarriedItems,
  type ChatMessage,
  type ChatToolCall,
  type ChatContentPart,
  isEmptyText,
  joinTexts,
} from '../../../wire/canonical-call.ts';
import { asRecord, type JsonRecord, isRecord, textIn, unwrapArguments } from '../../../wire/json.ts';
import { type StatePart, stretchesOf } from '../../../wire/turn-state.ts';
import { correctImageUrl, wrapInput } from '../../request-fields.ts';
import { mapCallIds } from '../../sent-call-ids.ts';
import { type RequestSettings, CannotCarry } from '../../dialect.ts';

interface InputSettings extends Pick<RequestSettings, 'states' | 'callIds' | 'quirks' | 'omissions'> {
  /** false: calls of custom tools are sent as function calls with one text `input`. */
  customTools: boolean;
  carried: CarriedItems | undefined;
  /** The tools that carried items declare, as sent. */
  itemTools: ReadonlyMap<JsonRecord, readonly JsonRecord[]>;
  /** The message that is sent as a field. */
  instructions: ChatMessage | undefined;
}

/** Throws CannotCarry. */
export function convertMessages(messages: readonly ChatMessage[], settings: InputSettings): JsonRecord[] {
  const { carried, quirks } = settings;
  const ids = mapCallIds(messages, { callIds: settings.callIds, form: quirks.callIdForm });
  /** The ids of custom calls so far: their results have an item type of their own. */
  const custom = new Set<string>();
  const convertMessage = (message: ChatMessage, path: string): JsonRecord[] => {
    const { role, content } = message;
    if (role === 'assistant') {
      const own = ids.calls(message);
      return rebuildTurn(message, statesOf(message, settings), (call, index) => {
        const item = convertCall(call, own[index] ?? '', settings);
        if (item['type'] === 'custom_tool_call') custom.add(own[index] ?? '');
        else if (call.type !== 'custom') custom.delete(own[index] ?? '');
        return item;
      });
    }
    if (role === 'tool') {
      const callId = ids.result(message);
      const type = custom.has(callId) ? 'custom_tool_call_output' : 'function_call_output';
      return [{ type, call_id: callId, output: convertToolOutput(content, path) }];
    }
    // The endpoint leaves the role `function` only to results without a call.
    const usual = role === 'function' ? 'user' : role;
    const sent = usual === 'system' && quirks.bindsPrefix ? 'developer' : usual;
    return [{ type: 'message', role: sent, content: convertContent(content, path) }];
  };
  const convertItemsAfter = (message: ChatMessage | undefined): JsonRecord[] =>
    (carried?.after.get(message) ?? []).flatMap((item) => {
      const result = carried?.late?.get(item);
      return result ? convertMessage(result, 'input') : convertCarriedItem(item, settings);
    });
  const separateMessages = new Set([settings.instructions, ...(carried?.late?.values() ?? [])]);
  const items = messages.flatMap((message, i) => {
    if (separateMessages.has(message)) return convertItemsAfter(message);
    const own = findCarriedItems(message, settings) ?? convertMessage(message, `messages[${i}].content`);
    return [...own, ...convertItemsAfter(message)];
  });
  items.unshift(...convertItemsAfter(undefined));
  return quirks.systemPosition === 'first' ? mergeSystemItems(items) : items;
}

function convertCall(
  call: ChatToolCall,
  callId: string,
  { customTools, carried }: InputSettings,
): JsonRecord {
  const { name, input } = asRecord(call['custom']);
  const known = { call_id: callId, ...(carried?.asyncCalls?.has(call) && { async: true }) };
  if (call.type !== 'custom' || typeof name !== 'string') {
    const { name: called = '', arguments: given } = call.function ?? {};
    return { type: 'function_call', ...known, name: called, arguments: unwrapArguments(given ?? '') };
  }
  return customTools
    ? { type: 'custom_tool_call', ...known, name, input: textIn(input) }
    : { type: 'function_call', ...known, name, arguments: wrapInput(textIn(input)) };
}

/** An item that only adds tools is dropped without them. */
function convertCarriedItem(item: JsonRecord, { itemTools, omissions }: InputSettings): JsonRecord[] {
  const tools = itemTools.get(item) ?? [];
  if (item['type'] === 'additional_tools') return tools.length > 0 ? [{ ...item, tools }] : [];
  if (omissions.has('state') && 'encrypted_content' in item) return [];
  return [item['type'] === 'tool_search_output' ? { ...item, tools } : item];
}

/**
 * The client's own items for a message. Their encrypted content may come from another origin: then the message is sent
 * instead. The same holds for a compaction from another origin, because the client only has it encrypted by the relay.
 */
function findCarriedItems(
  message: ChatMessage,
  { carried, omissions, states, quirks }: InputSettings,
): JsonRecord[] | undefined {
  const item = carried?.instead.get(message);
  if (item?.['type'] === 'compaction_trigger') return quirks.supportsCompaction ? [item] : undefined;
  if (!item || omissions.has('state')) return undefined;
  if (item['type'] !== 'compaction') return [item];
  const opaque = (states.get(message) ?? []).flatMap((part) =>
    'opaque' in part ? [part.opaque['item']] : [],
  );
  const own = opaque.filter(isRecord).filter(({ type }) => type === 'compaction');
  return own.length > 0 ? own : undefined;
}

/** Phases are not encrypted, so they stay when encrypted items are left out. */
function statesOf(
  message: ChatMessage,
  { states, omissions }: InputSettings,
): readonly StatePart[] | undefined {
  const parts = states.get(message);
  return omissions.has('state') ? parts?.filter((part) => !('opaque' in part && part.opaque['item'])) : parts;
}

/** For upstreams that accept one system message, at the beginning. */
function mergeSystemItems(items: readonly JsonRecord[]): JsonRecord[] {
  const content = items.filter(isSystem).flatMap((item) => item['content'] as JsonRecord[]);
  if (content.length === 0) return [...items];
  return [{ type: 'message', role: 'system', content }, ...items.filter((item) => !isSystem(item))];
}

const isSystem = ({ role }: JsonRecord): boolean => role === 'system' || role === 'developer';

// Assistant turns, rebuilt as the items that the upstream once sent: reasoning, messages and calls in their order.

/**
 * Sends reasoning unchanged, before the text or call that it led to. The vendor refuses reasoning that nothing
 * follows, so it is left out if that is missing. Text and calls that the layout does not name follow at the end.
 * `parts`: the layout of the turn and the state between.
 */
function rebuildTurn(
  message: ChatMessage,
  parts: readonly StatePart[] = [],
  callItem: (call: ChatToolCall, index: number) => JsonRecord,
): JsonRecord[] {
  // The boundaries of its texts do not belong to the turn.
  const text = joinTexts(message.content, '');
  const stretches = stretchesOf(text, parts) ?? [text];
  const calls = new Map((message.tool_calls ?? []).entries());
  const phases = typeof message['phase'] === 'string' ? { phase: message['phase'] } : {};
  const items: JsonRecord[] = [];
  let reasoning: JsonRecord[] = [];
  const add = (item: JsonRecord | undefined): void => {
    if (item) items.push(...reasoning, item);
    reasoning = [];
  };
  for (const part of parts) {
    if ('opaque' in part) {
      const { item } = part.opaque;
      if (isRecord(item) && item['type'] === 'reasoning') reasoning.push(item);
      else if (isRecord(item)) items.push(item);
    } else if ('text' in part) {
      const stretch = stretches.shift() ?? '';
      const phase = part.phase === undefined ? phases : { phase: part.phase };
      add(stretch === '' ? undefined : createMessageItem(createTextPart(stretch), phase));
    } else {
      const call = calls.get(part.call);
      calls.delete(part.call);
      add(call && callItem(call, part.call));
    }
  }
  const refusal = readRefusal(message);
  const remainder = stretches.join('');
  if (remainder !== '') add(createMessageItem(createTextPart(remainder), phases));
  if (refusal !== '') add(createMessageItem({ type: 'refusal', refusal }, phases));
  for (const [index, call] of calls) add(callItem(call, index));
  return items;
}

const createTextPart = (text: string): JsonRecord => ({ type: 'output_text', text });

const createMessageItem = (part: JsonRecord, phase: JsonRecord): JsonRecord => ({
  type: 'message',
  role: 'assistant',
  ...phase,
  content: [part],
});

// Content of messages.

type Content = ChatMessage['content'];

/** Text, images and files. `path`: of the content, for errors. Throws CannotCarry. */
function convertContent(content: Content, path: string): JsonRecord[] {
  if (typeof content === 'string') return [{ type: 'input_text', text: content }];
  const parts = content ?? [];
  const isAllEmpty = parts.every(isEmptyText);
  return parts.flatMap((part, i) => {
    if (isEmptyText(part) && !isAllEmpty) return [];
    const { prompt_cache_breakpoint: breakpoint } = part;
    const input = convertContentPart(part, `${path}[${i}]`);
    return [isRecord(breakpoint) ? { ...input, prompt_cache_breakpoint: breakpoint } : input];
  });
}

/** Returns one text, or content parts if there is more. Throws CannotCarry. */
function convertToolOutput(content: Content, path: string): string | JsonRecord[] {
  if (typeof content === 'string') return content;
  const parts = convertContent(content, path);
  const [first, ...more] = parts;
  if (!first) return '';
  return more.length === 0 && typeof first['text'] === 'string' ? first['text'] : parts;
}

function convertContentPart(part: ChatContentPart, path: string): JsonRecord {
  switch (part.type) {
    case 'text':
      return { type: 'input_text', text: part.text ?? '' };
    case 'refusal':
      return { type: 'input_text', text: textIn(part['refusal']) };
    case 'image_url':
      return imagePart(part);
    case 'file':
      return convertFile(asRecord(part['file']), path);
    default:
      throw new CannotCarry(path, `Parts of type '${part.type.slice(0, 60)}' cannot be sent to this model.`);
  }
}

const imagePart = ({ image_url: image }: ChatContentPart): JsonRecord => ({
  type: 'input_image',
  image_url: correctImageUrl(image?.url ?? ''),
  detail: image?.detail ?? 'auto',
});

/** Sends a file by its data, its address or its id. Data needs a name, by which the vendor tells the type of file. */
function convertFile(
  { file_data: data, file_url: url, file_id: id, filename }: JsonRecord,
  path: string,
): JsonRecord {
  const named = typeof filename === 'string' && filename !== '' ? { filename } : {};
  if (typeof data === 'string')
    return {
      type: 'input_file',
      filename: /^data:application\/pdf/i.test(data) ? 'file.pdf' : 'file',
      ...named,
      file_data: data,
    };
  if (typeof url === 'string') return { type: 'input_file', file_url: url };
  if (typeof id === 'string') return { type: 'input_file', file_id: id };
  throw new CannotCarry(path, 'A file needs its data or its URL.');
}

/** Reads the refusal from its field or from content parts. */
function readRefusal({ content, ...message }: ChatMessage): string {
  if (typeof message['refusal'] === 'string') return message['refusal'];
  const parts = typeof content === 'string' ? [] : (content ?? []);
  return parts.map(({ type, refusal }) => (type === 'refusal' ? textIn(refusal) : '')).join('');
}
