/**
 * Ids of tool calls. Vendors' short ids repeat between turns, so clients see a unique id that holds the vendor's
 * own; the vendor gets its own back.
 */
import { fingerprint } from '../wire/fingerprint.ts';

/** A vendor's id of this length or more is taken as unique and shown as it is. */
const longId = 20;
/** The longest id that clients see. OpenAI's own upstreams refuse longer ones. */
const shownMax = 64;
const shown = /^call_([0-9a-z]{4})[0-9a-z]*_([A-Za-z0-9_-]+)$/;
/** Letters, digits and signs, without a number at the end that only counts the calls of a turn, as in `search:0`. */
const unique = /^(?!.*:\d{1,4}$)[\x21-\x7e]+$/;

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
    this.#unique = requestId.slice(-10).replaceAll(/[^0-9a-z]/g, '0');
  }

  /**
   * The id that the client sees, of at most 64 characters. `index`: the place of the call in the whole answer, which
   * keeps ids apart. `vendorId` undefined: the upstream sent none.
   */
  show(vendorId: string | undefined, index: number): string {
    const own = `call_${this.#channel}${this.#unique}${index.toString(36)}_`;
    if (vendorId === undefined || vendorId === '' || vendorId.length > shownMax) return own;
    if (vendorId.length >= longId && unique.test(vendorId) && this.vendorId(vendorId) === vendorId)
      return vendorId;
    const kept = own + base64Url(vendorId);
    return kept.length > shownMax || this.vendorId(kept) !== vendorId ? own : kept;
  }

  /** The vendor's own id in a client's id, if this channel gave it; else the client's id unchanged. */
  vendorId(clientId: string): string {
    if (clientId.length > shownMax) return clientId;
    const [, channel, kept] = shown.exec(clientId) ?? [];
    if (channel !== this.#channel || kept === undefined) return clientId;
    const id = fromBase64Url(kept);
    // Only what `show` writes: two ids of a client must not become one by other ways to write the same bytes.
    return id === undefined || id === '' || base64Url(id) !== kept ? clientId : id;
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
    const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
    return utf8.decode(Uint8Array.from(bytes, (c) => c.charCodeAt(0)));
  } catch {
    return undefined;
  }
}
