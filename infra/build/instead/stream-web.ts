/**
 * Replaces `node:stream/web` in functions. middy imports this class only for `instanceof` checks of bodies, and the import loads web
 * streams, which costs 2 ms of each start. Bodies here are Node streams.
 */
export const ReadableStream = {
  [Symbol.hasInstance]: (value: unknown): boolean => value instanceof globalThis.ReadableStream,
};
