/** The blocks of an assistant turn: its text, its calls, and the thinking that the vendor wants back with them. */
import type { ChatMessage, ChatToolCall } from '../../../wire/chat-request.ts';
import { asRecord, isRecord, parseJson, type JsonRecord } from '../../../wire/json-record.ts';
import { stretchesOf, type StatePart } from '../../../wire/turn-state.ts';
import { CannotCarry } from '../../dialect.ts';
import { cacheControlOf, textBlocks, withMessageBreakpoint } from './part-blocks.ts';

export interface AssistantTurn {
  message: ChatMessage;
  /** The message in the client's request, for errors. */
  path: string;
  /** The ids of the calls as they go up. */
  ids: readonly string[];
  /** What came with the turn. Undefined: nothing, or it may not go to this upstream. */
  state: readonly StatePart[] | undefined;
}

/**
 * Thinking goes up as it came, at its place among text and calls; before both if the client changed the text. What the
 * layout does not name follows it, text before calls.
 */
export function assistantBlocks({ message, path, ids, state }: AssistantTurn): JsonRecord[] {
  const calls = (message.tool_calls ?? []).map((call, index) => callBlock(call, ids[index] ?? ''));
  const text = textOf(message, path);
  const blocks = state ? rebuilt(state, text, calls) : [...textBlocks(text), ...calls];
  return withMessageBreakpoint(withPartBreakpoint(blocks, message), message);
}

function rebuilt(state: readonly StatePart[], text: string, calls: readonly JsonRecord[]): JsonRecord[] {
  const named = state.flatMap((part) => ('call' in part ? [part.call] : []));
  const isOfCalls = new Set(named).size === named.length && named.every((index) => index < calls.length);
  const stretches = isOfCalls ? stretchesOf(text, state) : undefined;
  if (!stretches) {
    return [
      ...state.flatMap((part) => ('opaque' in part ? thinking(part.opaque) : [])),
      ...textBlocks(text),
      ...calls,
    ];
  }
  const blocks = state.flatMap((part) => {
    if ('opaque' in part) return thinking(part.opaque);
    if ('call' in part) return calls.slice(part.call, part.call + 1);
    return textBlocks(stretches.shift() ?? '');
  });
  const followed = calls.filter((_, index) => !named.includes(index));
  return [...blocks, ...textBlocks(stretches.join('')), ...followed];
}

/** Nothing but thinking is opaque here; anything else comes from a damaged store. */
const thinking = (block: JsonRecord): JsonRecord[] =>
  block['type'] === 'thinking' || block['type'] === 'redacted_thinking' ? [block] : [];

function textOf({ content, ...message }: ChatMessage, path: string): string {
  if (typeof content === 'string' && content !== '') return content;
  const parts = Array.isArray(content) ? content : [];
  const texts = parts.map((part, index) => {
    const text = part.type === 'refusal' ? part['refusal'] : part.text;
    if (typeof text === 'string' && (part.type === 'text' || part.type === 'refusal')) return text;
    const type = `${path}.content[${index}].type`;
    throw new CannotCarry(type, `An assistant's content of type ${part.type} cannot be sent to this model.`);
  });
  const joined = texts.join('');
  return joined === '' && typeof message['refusal'] === 'string' ? message['refusal'] : joined;
}

/** A breakpoint on one of the parts, which become one text, stands on the last block of text. */
function withPartBreakpoint(blocks: JsonRecord[], { content }: ChatMessage): JsonRecord[] {
  const parts = Array.isArray(content) ? content : [];
  const marked = parts.findLast((part) => isRecord(asRecord(part)['cache_control']));
  const last = blocks.findLastIndex(({ type }) => type === 'text');
  if (!marked || last < 0) return blocks;
  return blocks.map((block, index) => (index === last ? { ...block, ...cacheControlOf(marked) } : block));
}

function callBlock(call: ChatToolCall, id: string): JsonRecord {
  const custom = asRecord(call['custom']);
  const isCustom = call.type === 'custom' && typeof custom['name'] === 'string';
  const name = isCustom ? custom['name'] : (call.function?.name ?? '');
  const input = isCustom ? { input: custom['input'] ?? '' } : inputOf(call.function?.arguments ?? '');
  return { type: 'tool_use', id, name, input };
}

/** The vendor accepts objects alone. Arguments that are none, such as cut ones, are kept as a text. */
function inputOf(text: string): JsonRecord {
  if (text.trim() === '') return {};
  const value = parseJson(text);
  return isRecord(value) ? value : { input: value ?? text };
}
