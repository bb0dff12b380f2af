/**
 * A sequence that is passed on as it is, and whose end is reported. Must never be a generator: one holds a return back until
 * the read before it ends, and drops a return that comes before its first read.
 */

/** @param ended when the source has ended or failed, or its reader returned. May be reported more than once: the first counts */
export function passedOn<T>(
  source: AsyncIterable<T>,
  ended: (failure?: { error: unknown }) => void,
): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]: () => {
      const reads = source[Symbol.asyncIterator]();
      return {
        async next() {
          try {
            const read = await reads.next();
            if (read.done) ended();
            return read;
          } catch (error) {
            ended({ error });
            throw error;
          }
        },
        return() {
          ended();
          return reads.return?.() ?? Promise.resolve({ done: true, value: undefined });
        },
      };
    },
  };
}
