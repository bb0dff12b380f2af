/**
 * In functions, instead of `node:stream/web`: middy imports this class only for `instanceof` checks of bodies, and the import
 * loads web streams, 2 ms of each start. Bodies here are streams of Node.
 */
export const ReadableStream = {
  [Symbol.hasInstance]: (value: unknown): boolean => value instanceof globalThis.ReadableStream,
};
