/**
 * Ids of tool calls. Vendors' short ids repeat between turns, so clients see a unique id that holds the vendor's
 * own; the vendor gets its own back.
 */
import { fingerprint } from '../wire/fingerprint.ts';

/** A vendor's id of this length or more is taken as unique and shown as it is. */
const longId = 20;
const shown = /^call_([0-9a-z]{4})[0-9a-z]*_([A-Za-z0-9_-]*)$/;

export interface CallIdMark {
  /** The channel's id: an id is the vendor's own only where it came from. */
  channel: string;
  /** The request's id; its last characters make an id unique. */
  requestId: string;
}

/** Shows and reads ids for one request to one channel. */
export class CallIds {
  readonly #channel: string;
  readonly #unique: string;

  constructor({ channel, requestId }: CallIdMark) {
    this.#channel = fingerprint(channel).slice(-4);
    this.#unique = requestId.slice(-10);
  }

  /**
   * The id that the client sees. `index`: the place of the call in the whole answer, which keeps ids apart.
   * `vendorId` undefined: the upstream sent none.
   */
  show(vendorId: string | undefined, index: number): string {
    if (vendorId !== undefined && vendorId.length >= longId && vendorId.length <= 64) return vendorId;
    const kept = vendorId === undefined || vendorId.length > longId ? '' : base64Url(vendorId);
    return `call_${this.#channel}${this.#unique}${index.toString(36)}_${kept}`;
  }

  /** The vendor's own id in a client's id, if this channel gave it; else the client's id unchanged. */
  vendorId(clientId: string): string {
    const [, channel, kept] = shown.exec(clientId) ?? [];
    if (channel !== this.#channel || kept === undefined || kept === '') return clientId;
    return fromBase64Url(kept) ?? clientId;
  }
}

const base64Url = (text: string): string =>
  btoa(String.fromCharCode(...new TextEncoder().encode(text)))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');

function fromBase64Url(text: string): string | undefined {
  try {
    const bytes = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
    return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(bytes, (c) => c.charCodeAt(0)));
  } catch {
    return undefined;
  }
}

const forms = {
  max64: { pattern: /^.{1,64}$/s, length: 64 },
  max40: { pattern: /^.{1,40}$/s, length: 40 },
  alnum9: { pattern: /^[a-zA-Z0-9]{9}$/, length: 9 },
  word64: { pattern: /^[a-zA-Z0-9_-]{1,64}$/, length: 64 },
};
export type CallIdForm = keyof typeof forms;

/**
 * Maps the ids of one request to ids that the upstream accepts, one to one, the same for the same list of ids in
 * every turn: an id that fits stays, another becomes one made of its fingerprint.
 */
export function mappedIds(ids: Iterable<string>, form: CallIdForm): Map<string, string> {
  const { pattern, length } = forms[form];
  const given = new Set(ids);
  const used = new Set([...given].filter((id) => pattern.test(id)));
  return new Map(
    [...given].map((id) => {
      if (pattern.test(id)) return [id, id];
      let mapped = madeId(id, 0, length);
      for (let salt = 1; used.has(mapped); salt += 1) mapped = madeId(id, salt, length);
      used.add(mapped);
      return [id, mapped];
    }),
  );
}

/** Letters and digits alone, so that every form accepts it. */
function madeId(id: string, salt: number, length: number): string {
  const digits = fingerprint(`${salt}:${id}`) + fingerprint(`${id}:${salt}`);
  return length < 10 ? digits.slice(-length).padStart(length, '0') : `call${digits}`;
}
