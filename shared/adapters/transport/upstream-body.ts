/** A reply's body as an async sequence that can be returned early, decoded where it is compressed. */
import type { IncomingMessage } from 'node:http';
import { TransportError } from '../../upstreams/exchange.ts';

/**
 * Readers return at `[DONE]`, shortly before the reply ends. Waiting this long for the end keeps the
 * connection reusable.
 */
const lingerMs = 100;

/** The bytes of a reply as the upstream meant them. No encoding is asked for; some proxies compress all the same. */
export function replyBody(reply: IncomingMessage, signal: AbortSignal): AsyncIterable<Uint8Array> {
  const encoding = reply.headers['content-encoding']?.trim().toLowerCase() ?? '';
  const bytes = sentBytes(reply, signal);
  if (encoding === '' || encoding === 'identity') return bytes;
  return {
    [Symbol.asyncIterator]: () => {
      const reads = bytes[Symbol.asyncIterator]();
      let decoding: AsyncGenerator<Uint8Array, void, undefined> | undefined;
      return {
        async next() {
          decoding ??= (await import('./decoded-body.ts')).decoded(reads, encoding);
          return decoding.next();
        },
        async return() {
          await reads.return?.();
          void decoding?.return();
          return { done: true, value: undefined };
        },
      };
    },
  };
}

/**
 * The bytes of a reply as they arrive. A failure rejects the pending read with a TransportError. An early
 * return does not wait for a pending read; it closes the connection unless the reply ends within `lingerMs`.
 */
function sentBytes(reply: IncomingMessage, signal: AbortSignal): AsyncIterable<Uint8Array> {
  // Without a listener Node throws the error instead of keeping it for the next read.
  reply.on('error', () => undefined);
  return {
    [Symbol.asyncIterator]: () => {
      const reads: AsyncIterator<Uint8Array> = reply.iterator({ destroyOnReturn: false });
      let left = false;
      return {
        async next() {
          try {
            return left ? { done: true, value: undefined } : await reads.next();
          } catch {
            if (left) return { done: true, value: undefined };
            throw signal.aborted
              ? new TransportError('aborted', 'The call was given up while the reply was read.')
              : new TransportError('reset', 'The connection broke while the reply was read.');
          }
        },
        async return() {
          left = true;
          linger(reply, reads);
          return { done: true, value: undefined };
        },
      };
    },
  };
}

function linger(reply: IncomingMessage, reads: AsyncIterator<Uint8Array>): void {
  if (reply.readableEnded) return;
  const timer = setTimeout(() => reply.destroy(), lingerMs);
  reply.once('close', () => clearTimeout(timer));
  // The remaining bytes are drained only after the iterator has released the stream.
  const released = reads.return?.() ?? Promise.resolve();
  released.then(
    () => reply.resume(),
    () => reply.destroy(),
  );
}
