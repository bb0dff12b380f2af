/** Prints a report: what a terminal has room for. The file has the rest. */
import { nameOf } from '../../../../shared/operate/config/findings.ts';
import { marginOf } from '../../../../shared/operate/report/margin-of.ts';
import { reportJson } from '../../../../shared/operate/report/report-json.ts';
import type { ReportView } from '../../../../shared/operate/report/report-view.ts';
import { grouped, percent, yuanOrNone, yuanText } from '../../report/report-words.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { channelTable, modelTable, nearEmptyTable } from './report-tables.ts';

const shown = 10;

/** @param file where it was written as HTML */
export function printReport(terminal: Terminal, view: ReportView, file: string | undefined): void {
  view.problems.forEach(terminal.remark);
  if (file !== undefined) terminal.remark(`written: ${file}`);
  if (terminal.format === 'json') return terminal.printJson(reportJson(view));
  if (file !== undefined) return;
  const { counts, amounts } = view.whole;
  const calls = counts.calls ?? 0;
  const { earned, knownCalls } = marginOf(view.whole);
  terminal.print(`${view.period.title}${view.period.isRunning ? ', not over yet' : ''} (UTC)`);
  terminal.print(
    `${grouped(calls)} calls, ${percent(counts.failures ?? 0, calls)} failed, ` +
      `${yuanText(amounts.charged ?? 0n)} yuan charged (before: ${yuanText(view.before.amounts.charged ?? 0n)}), ` +
      `margin ${yuanOrNone(earned)} over the ${percent(knownCalls, calls)} of calls whose cost is known`,
  );
  const tables = [modelTable(view.models), channelTable(view.channels), nearEmptyTable(view.nearEmpty)];
  for (const rows of tables) {
    if (rows.length === 1) continue;
    terminal.print('');
    terminal.printTable(rows.slice(0, shown + 1));
    if (rows.length > shown + 1) terminal.print(`and ${rows.length - shown - 1} more: see --html or --json`);
  }
  if (view.marks.length === 0) return;
  terminal.print('');
  for (const mark of view.marks.slice(0, shown))
    terminal.print(`${nameOf(mark)}: ${mark.problem ?? mark.warning ?? ''}`);
  if (view.marks.length > shown) terminal.print(`and ${view.marks.length - shown} more marks: see check`);
}
