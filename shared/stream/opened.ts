/**
 * Waits until a sequence has proved itself: pulls batches up to and including the first that satisfies `isOpen`,
 * then hands out the whole sequence from its beginning. A source that fails or ends before that rejects, and
 * nothing of it was passed on, so another one may be tried.
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
