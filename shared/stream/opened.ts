/**
 * Reads batches up to and including the first that satisfies `isOpen`, then returns the whole sequence from
 * its beginning. Rejects if the source fails before that; nothing was passed on, so another source can be
 * tried. A source that ends before that is returned as it is.
 */
export async function opened<T>(
  source: AsyncGenerator<T[], void, undefined>,
  isOpen: (item: T) => boolean,
): Promise<AsyncGenerator<T[], void, undefined>> {
  const held: T[][] = [];
  for (;;) {
    const turn = await source.next();
    if (turn.done) break;
    held.push(turn.value);
    if (turn.value.some(isOpen)) break;
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
