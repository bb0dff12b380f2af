/** Decodes AWS's event stream, the binary frames in which Bedrock streams answers. */
import type { Machine } from './machine.ts';

/** One message of AWS's event stream, its text headers by name, such as `:event-type`. */
export interface EventStreamMessage {
  headers: ReadonlyMap<string, string>;
  payload: Uint8Array;
}

/** `too_long`: over the limit. `damaged`: a checksum or a length is wrong. `cut`: the stream ends in a message. */
export class EventStreamBroken extends Error {
  override readonly name = 'EventStreamBroken';
  readonly kind: 'too_long' | 'damaged' | 'cut';
  constructor(kind: EventStreamBroken['kind']) {
    super(`event stream: ${kind}`);
    this.kind = kind;
  }
}

/** Total length, length of the headers, checksum of these two. */
const preludeBytes = 12;
const checksumBytes = 4;

/**
 * Converts bytes, cut at any position, to messages of `application/vnd.amazon.eventstream`. Messages before a broken
 * one are given first. Source: the Smithy specification "Amazon Event Stream".
 */
export class EventStreamDecoder implements Machine<Uint8Array, EventStreamMessage> {
  readonly #messageBytesMax: number;
  #held = new Uint8Array(4096);
  #length = 0;
  #broken: EventStreamBroken | undefined;

  constructor({ messageBytesMax }: { messageBytesMax: number }) {
    this.#messageBytesMax = messageBytesMax;
  }

  push(bytes: Uint8Array): EventStreamMessage[] {
    if (this.#broken) throw this.#broken;
    this.#hold(bytes);
    const messages: EventStreamMessage[] = [];
    let start = 0;
    try {
      for (;;) {
        const end = start + this.#messageLength(start);
        if (end > this.#length) break;
        messages.push(readMessage(this.#held.slice(start, end)));
        start = end;
      }
    } catch (error) {
      if (!(error instanceof EventStreamBroken) || messages.length === 0) throw error;
      this.#broken = error;
    }
    this.#held.copyWithin(0, start, this.#length);
    this.#length -= start;
    return messages;
  }

  end(): EventStreamMessage[] {
    if (this.#broken) throw this.#broken;
    if (this.#length > 0) throw new EventStreamBroken('cut');
    return [];
  }

  /** Doubles the buffer as needed, so that a message that comes byte by byte is copied a few times, not each time. */
  #hold(bytes: Uint8Array): void {
    const length = this.#length + bytes.byteLength;
    if (length > this.#held.byteLength) {
      const larger = new Uint8Array(Math.max(length, 2 * this.#held.byteLength));
      larger.set(this.#held.subarray(0, this.#length));
      this.#held = larger;
    }
    this.#held.set(bytes, this.#length);
    this.#length = length;
  }

  /** The length of the message at a position; Infinity while its prelude has not come. */
  #messageLength(start: number): number {
    if (this.#length - start < preludeBytes) return Infinity;
    const view = new DataView(this.#held.buffer, start, preludeBytes);
    const length = view.getUint32(0);
    const isWhole = view.getUint32(8) === computeChecksum(this.#held.subarray(start, start + 8));
    if (!isWhole || length < preludeBytes + view.getUint32(4) + checksumBytes)
      throw new EventStreamBroken('damaged');
    if (length > this.#messageBytesMax) throw new EventStreamBroken('too_long');
    return length;
  }
}

function readMessage(bytes: Uint8Array): EventStreamMessage {
  const view = new DataView(bytes.buffer);
  const end = bytes.byteLength - checksumBytes;
  if (view.getUint32(end) !== computeChecksum(bytes.subarray(0, end))) throw new EventStreamBroken('damaged');
  const payloadStart = preludeBytes + view.getUint32(4);
  return {
    headers: readHeaders(bytes.subarray(preludeBytes, payloadStart)),
    payload: bytes.subarray(payloadStart, end),
  };
}

/** Bytes of a header's value by its type: true, false, byte, short, integer, long; then timestamp and UUID. */
const fixedBytes = [0, 0, 1, 2, 4, 8, undefined, undefined, 8, 16];
const textType = 7;

/** The headers that hold text. Others are skipped. */
function readHeaders(bytes: Uint8Array): Map<string, string> {
  const headers = new Map<string, string>();
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const utf8 = new TextDecoder();
  try {
    for (let at = 0; at < bytes.byteLength;) {
      const valueAt = at + 1 + view.getUint8(at);
      const name = utf8.decode(bytes.subarray(at + 1, valueAt));
      const type = view.getUint8(valueAt);
      const fixed = fixedBytes[type];
      const start = valueAt + 1 + (fixed === undefined ? 2 : 0);
      at = start + (fixed ?? view.getUint16(valueAt + 1));
      if (at > bytes.byteLength) throw new EventStreamBroken('damaged');
      if (type === textType) headers.set(name, utf8.decode(bytes.subarray(start, at)));
    }
  } catch (error) {
    // A length that leads out of the headers.
    throw error instanceof RangeError ? new EventStreamBroken('damaged') : error;
  }
  return headers;
}

/** CRC-32 with the reflected polynomial of IEEE 802.3, one entry for each byte. */
const remainders = Uint32Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte;
  for (let bit = 0; bit < 8; bit += 1)
    remainder = remainder & 1 ? (remainder >>> 1) ^ 0xedb88320 : remainder >>> 1;
  return remainder;
});

function computeChecksum(bytes: Uint8Array): number {
  let remainder = 0xffffffff;
  for (const byte of bytes) remainder = (remainder >>> 8) ^ (remainders[(remainder ^ byte) & 0xff] ?? 0);
  return (remainder ^ 0xffffffff) >>> 0;
}
