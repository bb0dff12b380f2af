/** Held items: far more than any answer has before its first content. */
const itemsMax = 4096;

/**
 * Reads batches up to and including the first that satisfies `isOpen`, or until so many wait that holding more would
 * take the memory of the process, then returns the whole sequence from its beginning. Rejects if the source fails before that; nothing was passed on, so another source can be
 * tried. A source that ends before that is returned as it is.
 */
export async function opened<T>(
  source: AsyncGenerator<T[], void, undefined>,
  isOpen: (item: T) => boolean,
): Promise<AsyncGenerator<T[], void, undefined>> {
  const held: T[][] = [];
  let items = 0;
  for (;;) {
    const turn = await source.next();
    if (turn.done) break;
    held.push(turn.value);
    items += turn.value.length;
    if (items > itemsMax || turn.value.some(isOpen)) break;
  }
  return replay(held, source);
}

async function* replay<T>(
  held: T[][],
  rest: AsyncGenerator<T[], void, undefined>,
): AsyncGenerator<T[], void, undefined> {
  try {
    yield* held;
    yield* rest;
  } finally {
    await rest.return();
  }
}
