/** Prints what `doctor` found. */
import type { Finding } from '../../../../shared/operate/doctor/finding.ts';
import { Failure } from '../../../../shared/operate/operator-failure.ts';
import type { JsonOption } from '../terminal/option-values.ts';
import type { Terminal } from '../terminal/terminal.ts';

const stateWidth = 'does not apply'.length;

/** Throws a Failure when something needs attention. */
export function printFindings(
  { print, printJson }: Terminal,
  findings: readonly Finding[],
  { json }: JsonOption,
): void {
  if (json) printJson(findings);
  else
    for (const { check, state, found, set } of findings) {
      print(`${state.padEnd(stateWidth)}  ${check}: ${found}`);
      if (set) print(`${' '.repeat(stateWidth)}  ${set.where}: ${set.line}`);
    }
  const count = findings.filter(({ state }) => state === 'attention').length;
  if (count > 0) throw new Failure(`${count} of ${findings.length} need attention`);
  if (!json) print(`${findings.length} looked at, nothing needs attention.`);
}
