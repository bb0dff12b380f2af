/**
 * A step over a sequence: synchronous, stateful, no input is held back without need. Everything between the
 * upstream's bytes and the client's text is one `run` of these over another, so both modes of both endpoints share one path.
 */
export interface Machine<In, Out> {
  push(item: In): Out[];
  /** The source ended by itself. May throw when that makes the sequence a failure. */
  end(): Out[];
  /** The source failed: recovers with the last items of a whole sequence, or throws. Absent: failures pass through. */
  fail?(error: unknown): Out[];
}

/**
 * Runs a machine over batches, one batch out for each batch in that yields something. What a batch emitted before
 * it failed still comes out.
 */
export async function* run<In, Out>(
  source: AsyncIterable<readonly In[]>,
  machine: Machine<In, Out>,
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
  if (last.length > 0) yield last;
}

function failed<Out>(machine: Machine<never, Out>, error: unknown): Out[] {
  if (machine.fail) return machine.fail(error);
  throw error;
}
