/** Rebuilds one assistant turn as the items that the upstream once sent: reasoning, messages and calls in their order. */
import type { ChatMessage, ChatToolCall } from '../../../wire/chat-request.ts';
import { isRecord, type JsonRecord } from '../../../wire/json-record.ts';
import { stretchesOf, type StatePart } from '../../../wire/turn-state.ts';
import { refusalText, spokenText } from './request-content.ts';

export interface TurnReading {
  message: ChatMessage;
  /** The layout of the turn and what belongs between its parts. Undefined: nothing was kept. */
  parts: readonly StatePart[] | undefined;
  /** The item of a call, which has this place among the message's calls. */
  callItem: (call: ChatToolCall, index: number) => JsonRecord;
}

/**
 * Reasoning goes up unchanged, before the part that it led to: the vendor refuses reasoning that nothing follows, so
 * it is left out where that part is missing. What the layout does not name follows at the end, text before calls.
 */
export function turnItems({ message, parts = [], callItem }: TurnReading): JsonRecord[] {
  const text = spokenText(message.content);
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
      add(stretch === '' ? undefined : messageItem(textPart(stretch), phase));
    } else {
      const call = calls.get(part.call);
      calls.delete(part.call);
      add(call && callItem(call, part.call));
    }
  }
  const refusal = refusalText(message);
  const rest = stretches.join('');
  if (rest !== '') add(messageItem(textPart(rest), phases));
  if (refusal !== '') add(messageItem({ type: 'refusal', refusal }, phases));
  for (const [index, call] of calls) add(callItem(call, index));
  return items;
}

const textPart = (text: string): JsonRecord => ({ type: 'output_text', text });

const messageItem = (part: JsonRecord, phase: JsonRecord): JsonRecord => ({
  type: 'message',
  role: 'assistant',
  ...phase,
  content: [part],
});
