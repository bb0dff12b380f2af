/** Ids of tool calls as they go upstream. An id that the upstream would refuse is mapped to one that it accepts. */
import type { ChatMessage } from '../wire/canonical-call.ts';
import { fingerprint } from '../wire/ids.ts';
import type { CallIds } from './call-ids.ts';

const idForms = {
  max64: { pattern: /^.{1,64}$/s, length: 64 },
  max40: { pattern: /^.{1,40}$/s, length: 40 },
  alnum9: { pattern: /^[a-zA-Z0-9]{9}$/, length: 9 },
  word64: { pattern: /^[a-zA-Z0-9_-]{1,64}$/, length: 64 },
};
export type CallIdForm = keyof typeof idForms;

/**
 * Maps the ids of one request to ids that the upstream accepts, one to one. An id that fits stays; another is derived
 * from its fingerprint. A result depends only on earlier ids, so a longer transcript with the same beginning maps them
 * the same. `ids`: in the order of the transcript.
 */
export function mapIds(ids: Iterable<string>, form: CallIdForm): Map<string, string> {
  const { pattern, length } = idForms[form];
  const used = new Set<string>();
  const mappedIds = new Map<string, string>();
  for (const id of ids) {
    if (mappedIds.has(id)) continue;
    let candidate = pattern.test(id) ? id : deriveId(id, 0, length);
    for (let salt = 1; used.has(candidate); salt += 1) candidate = deriveId(id, salt, length);
    used.add(candidate);
    mappedIds.set(id, candidate);
  }
  return mappedIds;
}

/** Letters and digits only, so every form accepts it. */
function deriveId(id: string, salt: number, length: number): string {
  const digits = fingerprint(`${salt}:${id}`) + fingerprint(`${id}:${salt}`);
  return length < 10 ? digits.slice(-length).padStart(length, '0') : `call${digits}`;
}

/**
 * The ids of tool calls as they are sent: the vendor's own if this channel issued them, or else the client's, mapped
 * if the vendor would refuse them. A repeated id belongs to another call and becomes another id.
 */
export interface SentIds {
  calls(message: ChatMessage): readonly string[];
  /** The id of the call that a tool message answers. */
  result(message: ChatMessage): string;
}

export function mapCallIds(
  messages: readonly ChatMessage[],
  { callIds, form }: { callIds: CallIds; form: CallIdForm },
): SentIds {
  const numberRepeat = createRepeatNumbering();
  /** The sent ids of the latest turn's calls by the client's id, without those that were already answered. */
  const open = new Map<string, string[]>();
  const calls = new Map<ChatMessage, string[]>();
  const results = new Map<ChatMessage, string>();
  for (const message of messages) {
    if (message.role === 'tool') {
      const id = message.tool_call_id ?? '';
      const left = open.get(id) ?? [];
      results.set(message, (left.length > 1 ? left.shift() : left[0]) ?? callIds.restoreVendorId(id));
    }
    const asked = (message.tool_calls ?? []).map((call, index) => call.id ?? `call_${index}`);
    for (const id of asked) open.set(id, []);
    const ids = asked.map((id) => {
      const own = numberRepeat(callIds.restoreVendorId(id));
      open.get(id)?.push(own);
      return own;
    });
    if (ids.length > 0) calls.set(message, ids);
  }
  const mappedIds = mapIds([...[...calls.values()].flat(), ...results.values()], form);
  const mapId = (id: string): string => mappedIds.get(id) ?? id;
  return {
    calls: (message) => (calls.get(message) ?? []).map(mapId),
    result: (message) => mapId(results.get(message) ?? ''),
  };
}

/** An id that came before gets the number of its use. */
function createRepeatNumbering(): (id: string) => string {
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
