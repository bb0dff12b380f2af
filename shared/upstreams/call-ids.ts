/**
 * Ids of tool calls as clients see them. Vendors' short ids repeat between turns, so clients see a unique id that holds the vendor's
 * own, and the vendor gets its own back.
 */
import { fingerprint } from '../wire/ids.ts';

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
