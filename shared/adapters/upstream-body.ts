import type { IncomingMessage } from 'node:http';
import { TransportError } from '../relay/ports.ts';

/**
 * The bytes of a reply as they come. A failure rejects the pending read with a TransportError. Returning closes the
 * connection at once, without waiting for a pending read, unless the reply was complete.
 */
export function replyBody(reply: IncomingMessage, signal: AbortSignal): AsyncIterable<Uint8Array> {
  // With a listener the failure is kept until it is read; without one Node drops it.
  reply.on('error', () => undefined);
  return {
    [Symbol.asyncIterator]: () => {
      const reads: AsyncIterator<Uint8Array> = reply[Symbol.asyncIterator]();
      let left = false;
      return {
        async next() {
          try {
            return await reads.next();
          } catch {
            if (left) return { done: true, value: undefined };
            throw signal.aborted
              ? new TransportError('aborted', 'The call was given up while the reply was read.')
              : new TransportError('reset', 'The connection broke while the reply was read.');
          }
        },
        async return() {
          left = true;
          reply.destroy();
          return { done: true, value: undefined };
        },
      };
    },
  };
}
