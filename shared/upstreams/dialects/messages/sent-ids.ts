/**
 * The ids of tool calls as they go up: the vendor's own where this channel gave them, else the client's, mapped where
 * the vendor would refuse them. An id that an earlier turn used already is another call and gets another id.
 */
import type { ChatMessage } from '../../../wire/chat-request.ts';
import type { RequestSettings } from '../../dialect.ts';
import { mappedIds } from '../../call-ids.ts';

export interface SentIds {
  /** The ids of an assistant message's calls, in order. */
  calls(message: ChatMessage): readonly string[];
  /** The id of the call that a tool message answers. */
  result(message: ChatMessage): string;
}

export function sentIds(
  messages: readonly ChatMessage[],
  { callIds, quirks }: Pick<RequestSettings, 'callIds' | 'quirks'>,
): SentIds {
  const counts = new Map<string, number>();
  const latest = new Map<string, string>();
  const calls = new Map<ChatMessage, string[]>();
  const results = new Map<ChatMessage, string>();
  const unique = (id: string): string => {
    const count = (counts.get(id) ?? 0) + 1;
    counts.set(id, count);
    return count === 1 ? id : `${id}#${count}`;
  };
  for (const message of messages) {
    if (message.role === 'tool') {
      const id = message.tool_call_id ?? '';
      results.set(message, latest.get(id) ?? id);
    }
    const ids = (message.tool_calls ?? []).map((call, index) => {
      const id = call.id ?? `call_${index}`;
      const own = unique(callIds.vendorId(id));
      latest.set(id, own);
      return own;
    });
    if (ids.length > 0) calls.set(message, ids);
  }
  const form = quirks.callIds === 'alnum9' ? 'alnum9' : 'word64';
  const mapped = mappedIds([...[...calls.values()].flat(), ...results.values()], form);
  const sent = (id: string): string => mapped.get(id) ?? id;
  return {
    calls: (message) => (calls.get(message) ?? []).map(sent),
    result: (message) => sent(results.get(message) ?? ''),
  };
}
