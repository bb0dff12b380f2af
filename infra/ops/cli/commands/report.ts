/** The command `report`: a week or a month at a glance, on the terminal, as JSON, or as one HTML file. */
import { counted } from '../../../../shared/operate/plan.ts';
import { nameOf } from '../../../../shared/operate/config/row-changes.ts';
import { marginOf, reportJson, viewReport, type ReportView } from '../../../../shared/operate/report.ts';
import { percent } from '../../console/layout/figures.ts';
import {
  channelColumns,
  failedShare,
  nearEmptyColumns,
  plainYuan,
  reportPage,
  servedColumns,
  type ReportColumn,
} from '../../report/report-page.ts';
import { masked } from '../../markup.ts';
import { shows } from '../command.ts';
import { textTable, type Column, type Terminal } from '../terminal.ts';
import { writeTextFile } from '../text-files.ts';

interface ReportOptions {
  html?: string;
  month?: string;
  week?: string;
}

export const reportCommand = shows('report', {
  does: 'spend, margin, failures, slow channels, accounts near empty and open marks of a week or month',
  takes: {
    '--html <file>': 'write it as one HTML file with plots, which loads nothing',
    '--month <month>': 'such as 2026-11',
    '--week <day>': 'the week, from Monday, that has this day, such as 2026-11-18',
  },
  notes: `
Without --month and --week: the seven days that end today. Days are UTC. Figures come from the sums of \`daily\`, so calls
that were refused before anything was reserved are in none of them.`,
  examples: [
    'report',
    'report --week 2026-11-18 --html week.html',
    'report --month 2026-11 --html november.html --stack relay',
  ],
  async run({ ports, terminal }, { html, month, week }: ReportOptions) {
    const view = await viewReport(ports, { month, week });
    if (html !== undefined) await writeTextFile(html, masked(await reportPage(view)));
    view.problems.forEach(terminal.remark);
    if (html !== undefined) terminal.remark(`written: ${html}`);
    if (terminal.format === 'json') terminal.printJson(reportJson(view));
    else if (html === undefined) printReport(terminal, view);
  },
});

const shown = 10;

/** What a terminal has room for. The file has the rest. */
function printReport({ print, printTable }: Terminal, view: ReportView): void {
  const { period, whole, before, nearEmpty, marks } = view;
  const { calls = 0 } = whole.counts;
  const { earned, knownCalls } = marginOf(whole);
  print(`${period.title}${period.isRunning ? ', not over yet' : ''} (UTC)`);
  print(
    `${counted(calls, 'call')}, ${failedShare(whole)} failed, ` +
      `${plainYuan(whole.amounts.charged ?? 0n)} yuan charged (before: ${plainYuan(before.amounts.charged ?? 0n)}), ` +
      `margin ${plainYuan(earned)} over the ${percent(knownCalls, calls)} of calls whose cost is known`,
  );
  const tables = [
    tableOf(['MODEL', ({ name }) => name], servedColumns, view.models),
    tableOf(['CHANNEL', ({ name }) => name], channelColumns, view.channels),
    tableOf(['NEAR EMPTY', ({ account }) => account], nearEmptyColumns, nearEmpty),
  ];
  for (const rows of tables) {
    if (rows.length === 1) continue;
    print('');
    printTable(rows.slice(0, shown + 1));
    if (rows.length > shown + 1) print(`and ${rows.length - shown - 1} more: see --html or --json`);
  }
  if (marks.length === 0) return;
  print('');
  for (const mark of marks.slice(0, shown)) print(`${nameOf(mark)}: ${mark.problem ?? mark.warning ?? ''}`);
  if (marks.length > shown) print(`and ${marks.length - shown} more marks: see check`);
}

const tableOf = <Row>(
  first: readonly [head: string, nameIn: (row: Row) => string],
  columns: readonly ReportColumn<Row>[],
  rows: readonly Row[],
): string[][] =>
  textTable([['', ...first], ...columns.map(([head, , text]): Column<Row> => ['', head, text])], rows);
