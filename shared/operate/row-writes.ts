/** Carries out plans that consist of writes to rows. */
import { Failure } from './operator-failure.ts';
import type { OperatorPorts } from './operator-ports.ts';
import type { Plan } from './plan.ts';
import type { RowWrite } from './row-tables.ts';

/**
 * Writes in order, up to the first conflict.
 * @param onProgress called with the number of further writes that were carried out
 * @returns the writes that were made: those without a conflict are left out where somebody else was faster
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
