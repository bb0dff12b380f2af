/** A reply's body as an async sequence that can be left early. */
import type { IncomingMessage } from 'node:http';
import { TransportError } from '../../upstreams/exchange.ts';

/** Readers leave at `[DONE]`, a moment before the reply's own end: a connection left then is still worth keeping. */
const lingerMs = 100;

/**
 * The bytes of a reply as they come. A failure rejects the pending read with a TransportError. Returning early does not
 * wait for a pending read, and closes the connection unless the reply ends by itself within a moment.
 */
export function replyBody(reply: IncomingMessage, signal: AbortSignal): AsyncIterable<Uint8Array> {
  // Node keeps a failure until it is read only when there is a listener.
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
