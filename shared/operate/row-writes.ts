/** Carries out plans whose changes are row writes. */
import { Failure } from './operator-failure.ts';
import type { OperatorPorts } from './operator-ports.ts';
import type { Plan } from './plan.ts';
import type { RowWrite } from './row-tables.ts';

/**
 * Carries out the writes in order and throws at the first write that fails with a `conflict`.
 * @param onProgress called with the number of further writes that were tried
 * @returns the writes that were made; failed writes without a `conflict` are left out
 */
export async function carryOutWrites(
  { tables }: Pick<OperatorPorts, 'tables'>,
  { changes, refusal }: Plan<RowWrite>,
  onProgress?: (count: number) => void,
): Promise<RowWrite[]> {
  if (refusal !== undefined) throw new Failure(refusal);
  const made: RowWrite[] = [];
  for (const write of changes) {
    if (await tables.write(write)) made.push(write);
    else if (write.conflict) throw write.conflict;
    onProgress?.(1);
  }
  return made;
}
