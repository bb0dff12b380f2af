/**
 * Converts a body to a Node stream that never emits an error: a stream error would end the runtime process.
 * When the client or the runtime's connection closes, the source is returned early, without waiting for a
 * pending read.
 */
import { Readable } from 'node:stream';

export function steadyBody(
  body: string | AsyncIterable<string>,
  onFault: (error: unknown) => void,
): Readable {
  return Readable.from(typeof body === 'string' ? (body === '' ? [] : [body]) : steady(body, onFault));
}

function steady(body: AsyncIterable<string>, onFault: (error: unknown) => void): AsyncIterable<string> {
  const end = { done: true, value: undefined } as const;
  return {
    [Symbol.asyncIterator]: () => {
      const texts = body[Symbol.asyncIterator]();
      return {
        async next() {
          try {
            return await texts.next();
          } catch (error) {
            onFault(error);
            return end;
          }
        },
        async return() {
          try {
            await texts.return?.();
          } catch (error) {
            onFault(error);
          }
          return end;
        },
      };
    },
  };
}
