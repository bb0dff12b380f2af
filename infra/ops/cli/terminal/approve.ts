/** Asks a plan's questions before its writes. Writes nothing itself. */
import { Failure } from '../../../../shared/operate/operator-failure.ts';
import type { Plan } from '../../../../shared/operate/plan.ts';
import type { Terminal } from './terminal.ts';

export interface ApproveOptions {
  dryRun?: boolean | undefined;
  yes?: boolean | undefined;
}

/**
 * Throws a Failure if the plan has a refusal or an answer is no.
 * @returns false if nothing is to be written: the plan has no changes, or --dry-run is set
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
