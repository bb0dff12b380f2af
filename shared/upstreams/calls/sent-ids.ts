/**
 * Ids of tool calls as they go up. Apart from `call-ids.ts`, because dialects alone need it, and functions load those
 * later.
 */
import type { ChatMessage } from '../../wire/chat-request.ts';
import { fingerprint } from '../../wire/fingerprint.ts';
import type { CallIds } from './call-ids.ts';

const forms = {
  max64: { pattern: /^.{1,64}$/s, length: 64 },
  max40: { pattern: /^.{1,40}$/s, length: 40 },
  alnum9: { pattern: /^[a-zA-Z0-9]{9}$/, length: 9 },
  word64: { pattern: /^[a-zA-Z0-9_-]{1,64}$/, length: 64 },
};
export type CallIdForm = keyof typeof forms;

/**
 * Maps the ids of one request to ids that the upstream accepts, one to one: an id that fits stays, another becomes one
 * made of its fingerprint. An id's place depends only on the ids before it, so that a longer transcript, whose first
 * ids are the same, maps them the same. `ids`: in the order of the transcript.
 */
export function mappedIds(ids: Iterable<string>, form: CallIdForm): Map<string, string> {
  const { pattern, length } = forms[form];
  const used = new Set<string>();
  const mapped = new Map<string, string>();
  for (const id of ids) {
    if (mapped.has(id)) continue;
    let fitting = pattern.test(id) ? id : madeId(id, 0, length);
    for (let salt = 1; used.has(fitting); salt += 1) fitting = madeId(id, salt, length);
    used.add(fitting);
    mapped.set(id, fitting);
  }
  return mapped;
}

/** Letters and digits alone, so that every form accepts it. */
function madeId(id: string, salt: number, length: number): string {
  const digits = fingerprint(`${salt}:${id}`) + fingerprint(`${id}:${salt}`);
  return length < 10 ? digits.slice(-length).padStart(length, '0') : `call${digits}`;
}

/**
 * The ids of tool calls as they go up: the vendor's own where this channel gave them, else the client's, mapped where
 * the vendor would refuse them. An id that an earlier call used already is another call's and becomes another id.
 */
export interface SentIds {
  /** The ids of an assistant message's calls, in order. */
  calls(message: ChatMessage): readonly string[];
  /** The id of the call that a tool message answers. */
  result(message: ChatMessage): string;
}

export function sentIds(
  messages: readonly ChatMessage[],
  { callIds, form }: { callIds: CallIds; form: CallIdForm },
): SentIds {
  const unique = uniqueNames();
  /** What the calls of the latest turn with a client's id are called, without those answered before another. */
  const open = new Map<string, string[]>();
  const calls = new Map<ChatMessage, string[]>();
  const results = new Map<ChatMessage, string>();
  for (const message of messages) {
    if (message.role === 'tool') {
      const id = message.tool_call_id ?? '';
      const left = open.get(id) ?? [];
      results.set(message, (left.length > 1 ? left.shift() : left[0]) ?? callIds.vendorId(id));
    }
    const asked = (message.tool_calls ?? []).map((call, index) => call.id ?? `call_${index}`);
    for (const id of asked) open.set(id, []);
    const ids = asked.map((id) => {
      const own = unique(callIds.vendorId(id));
      open.get(id)?.push(own);
      return own;
    });
    if (ids.length > 0) calls.set(message, ids);
  }
  const mapped = mappedIds([...[...calls.values()].flat(), ...results.values()], form);
  const sent = (id: string): string => mapped.get(id) ?? id;
  return {
    calls: (message) => (calls.get(message) ?? []).map(sent),
    result: (message) => sent(results.get(message) ?? ''),
  };
}

/** The names of calls in their order: one that came before gets the number of its use. */
function uniqueNames(): (id: string) => string {
  const counts = new Map<string, number>();
  const used = new Set<string>();
  return (id) => {
    let count = (counts.get(id) ?? 0) + 1;
    let own = count === 1 ? id : `${id}_${count}`;
    while (used.has(own)) {
      count += 1;
      own = `${id}_${count}`;
    }
    counts.set(id, count);
    used.add(own);
    return own;
  };
}
