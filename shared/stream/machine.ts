/**
 * A synchronous, stateful transformation of a sequence. It holds input back only if it must. A chain of
 * machines, each started by `run`, connects the upstream's bytes to the client's text, so both modes of both
 * endpoints share one path.
 */
export interface Machine<In, Out, Last extends Ending<Out> = Out[]> {
  push(item: In): Out[];
  /** Called when the source ends normally. Throws if the sequence is incomplete. */
  end(): Last;
  /**
   * Called when the source fails. Returns the last items if the sequence is complete anyway, otherwise
   * throws. Absent: the failure is rethrown.
   */
  fail?(error: unknown): Out[];
}

/** One batch, or several that are made one by one, so that only one of them is in memory. */
export type Ending<Out> = Out[] | Iterable<Out[]>;

export const batchesOf = <Out>(last: Ending<Out>): Iterable<Out[]> => (Array.isArray(last) ? [last] : last);

/** The caller asks the machine itself for its last items, in its own time. */
export const withoutEnd = <In, Out>(machine: Machine<In, Out, Ending<Out>>): Machine<In, Out> => ({
  push: (item) => machine.push(item),
  end: () => [],
});

/**
 * Runs a machine over batches and yields one batch for each input batch that gives output. If a batch fails,
 * the output that it gave before is still yielded.
 */
export async function* run<In, Out>(
  source: AsyncIterable<readonly In[]>,
  machine: Machine<In, Out, Ending<Out>>,
): AsyncGenerator<Out[], void, undefined> {
  let out: Out[] = [];
  let failure: { error: unknown } | undefined;
  try {
    for await (const batch of source) {
      out = [];
      for (const item of batch) out.push(...machine.push(item));
      if (out.length > 0) yield out;
      out = [];
    }
  } catch (error) {
    failure = { error };
  }
  if (failure && out.length > 0) yield out;
  const last = failure ? failMachine(machine, failure.error) : machine.end();
  for (const batch of batchesOf(last)) if (batch.length > 0) yield batch;
}

function failMachine<Out>(machine: Machine<never, Out, Ending<Out>>, error: unknown): Out[] {
  if (machine.fail) return machine.fail(error);
  throw error;
}

/** Held items: far more than any answer has before its first content. */
const itemsMax = 4096;

/**
 * Reads batches up to and including the first that satisfies `isOpen`, or until so many wait that holding more would
 * take the memory of the process, then returns the whole sequence from its beginning. Rejects if the source fails before that; nothing was passed on, so another source can be
 * tried. A source that ends before that is returned as it is.
 */
export async function readUntilOpen<T>(
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
