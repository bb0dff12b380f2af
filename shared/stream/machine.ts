/**
 * A synchronous, stateful transformation of a sequence. It holds input back only if it must. A chain of
 * machines, each started by `run`, connects the upstream's bytes to the client's text, so both modes of both
 * endpoints share one path.
 */
export interface Machine<In, Out, Last extends Iterable<Out> = Out[]> {
  push(item: In): Out[];
  /**
   * Called when the source ends normally. Throws if the sequence is incomplete. What is no array is made one by one, each
   * a batch of its own, so that only one of them is in memory.
   */
  end(): Last;
  /**
   * Called when the source fails. Returns the last items if the sequence is complete anyway, otherwise
   * throws. Absent: the failure is rethrown.
   */
  fail?(error: unknown): Out[];
}

/**
 * Runs a machine over batches and yields one batch for each input batch that gives output. If a batch fails,
 * the output that it gave before is still yielded.
 */
export async function* run<In, Out>(
  source: AsyncIterable<readonly In[]>,
  machine: Machine<In, Out, Iterable<Out>>,
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
  const last = failure ? failed(machine, failure.error) : machine.end();
  if (Array.isArray(last)) {
    if (last.length > 0) yield last as Out[];
  } else for (const each of last) yield [each];
}

function failed<Out>(machine: Machine<never, Out, Iterable<Out>>, error: unknown): Out[] {
  if (machine.fail) return machine.fail(error);
  throw error;
}
