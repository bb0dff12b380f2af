/** Stands between a plan and its writes: asks the operator what the plan wants confirmed. Writes nothing itself. */
import { Failure } from '../../../shared/operate/operator-failure.ts';
import type { Plan } from '../../../shared/operate/plan.ts';
import type { Terminal } from './terminal/terminal.ts';

export interface ApproveOptions {
  dryRun?: boolean | undefined;
  yes?: boolean | undefined;
}

/**
 * Throws a Failure for a plan that must not be carried out, and when the answer is no.
 * @returns false: nothing is to be written, because there is nothing to write or because of --dry-run
 */
export async function approve(
  { print, confirm }: Pick<Terminal, 'print' | 'confirm'>,
  { changes, questions, refusal }: Plan<unknown>,
  { dryRun, yes }: ApproveOptions,
): Promise<boolean> {
  if (refusal !== undefined) throw new Failure(refusal);
  if (changes.length === 0) return false;
  if (dryRun) {
    print('nothing was written: --dry-run');
    return false;
  }
  for (const question of questions) await confirm(question, { yes });
  return true;
}
