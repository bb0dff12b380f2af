/**
 * Ids of tool calls. Vendors' short ids repeat between turns, so clients see a unique id that holds the vendor's own, and the
 * vendor gets its own back. An id that the upstream would refuse is mapped to one that it accepts.
 */
import type { ChatMessage } from '../wire/canonical-call.ts';
import { fingerprint } from '../wire/ids.ts';

// Ids as clients see them.

/** A vendor's id of this length or more is taken as unique and shown as it is. */
const longIdMin = 20;
/** The longest id that clients see. OpenAI's own upstreams refuse longer ones. */
const shownMax = 64;
const shownIdPattern = /^call_([0-9a-z]{4})[0-9a-z]*_([A-Za-z0-9_-]+)$/;
/** Letters, digits and signs, without a number at the end that only counts the calls of a turn, as in `search:0`. */
const uniqueIdPattern = /^(?!.*:\d{1,4}$)[\x21-\x7e]+$/;

/** Shows and reads ids for one request to one channel. */
export class CallIds {
  readonly #channel: string;
  readonly #unique: string;

  /** An id is the vendor's own only on the channel that it came from. The end of the request's id makes an id unique. */
  constructor({ channel, requestId }: Record<'channel' | 'requestId', string>) {
    this.#channel = fingerprint(channel).slice(-4);
    this.#unique = requestId.slice(-10).replaceAll(/[^0-9a-z]/g, '0');
  }

  /** At most 64 characters. `index`: the position of the call in the whole answer, which keeps ids apart. */
  showId(vendorId: string | undefined, index: number): string {
    const made = `call_${this.#channel}${this.#unique}${index.toString(36)}_`;
    if (vendorId === undefined || vendorId === '' || vendorId.length > shownMax) return made;
    if (
      vendorId.length >= longIdMin &&
      uniqueIdPattern.test(vendorId) &&
      this.restoreVendorId(vendorId) === vendorId
    )
      return vendorId;
    const shownId = made + encodeBase64Url(vendorId);
    return shownId.length > shownMax || this.restoreVendorId(shownId) !== vendorId ? made : shownId;
  }

  /** Returns the vendor's own id if this channel issued it, or the client's id unchanged. */
  restoreVendorId(clientId: string): string {
    if (clientId.length > shownMax) return clientId;
    const [, channel, encoded] = shownIdPattern.exec(clientId) ?? [];
    if (channel !== this.#channel || encoded === undefined) return clientId;
    const id = decodeBase64Url(encoded);
    // Accept only what `showId` writes: two ids of a client must not become one by another encoding of the same bytes.
    return id === undefined || id === '' || encodeBase64Url(id) !== encoded ? clientId : id;
  }
}

const encodeBase64Url = (text: string): string =>
  btoa(String.fromCharCode(...new TextEncoder().encode(text)))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');

function decodeBase64Url(text: string): string | undefined {
  try {
    const bytes = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
    const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
    return utf8.decode(Uint8Array.from(bytes, (c) => c.charCodeAt(0)));
  } catch {
    return undefined;
  }
}

// Ids as they go upstream.

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
