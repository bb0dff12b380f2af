/** Prints what `doctor` found. */
import type { Finding } from '../../../../shared/operate/doctor/finding.ts';
import { Failure } from '../../../../shared/operate/operator-failure.ts';
import { csvRows } from '../terminal/csv.ts';
import type { Terminal } from '../terminal/terminal.ts';

const stateWidth = 'does not apply'.length;

/** Throws a Failure when something needs attention. */
export function printFindings(
  { format, print, printJson, printCsv }: Terminal,
  findings: readonly Finding[],
): void {
  if (format === 'json') printJson(findings);
  else if (format === 'csv')
    printCsv(
      csvRows(
        ['state', 'check', 'found', 'where', 'line'],
        findings.map(({ set, ...found }) => ({ ...found, ...set })),
      ),
    );
  else
    for (const { check, state, found, set } of findings) {
      print(`${state.padEnd(stateWidth)}  ${check}: ${found}`);
      if (set) print(`${' '.repeat(stateWidth)}  ${set.where}: ${set.line}`);
    }
  const count = findings.filter(({ state }) => state === 'attention').length;
  if (count > 0) throw new Failure(`${count} of ${findings.length} need attention`);
  if (format === 'text') print(`${findings.length} looked at, nothing needs attention.`);
}
