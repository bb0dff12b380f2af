/** The command `report`: a week or a month at a glance, on the terminal, as JSON, or as one HTML file. */
import type { Command } from 'commander';
import {
  viewReport,
  marginOf,
  reportJson,
  type ReportView,
  type NearEmptyAccount,
  type ServedGroup,
  type ReportedChannel,
} from '../../../../shared/operate/report.ts';
import {
  reportPage,
  grouped,
  percent,
  yuanOrNone,
  yuanText,
  lastsFor,
  seconds,
} from '../../report/report-page.ts';
import type { CommandContext } from '../command.ts';
import { masked, type Terminal } from '../terminal.ts';
import { writeTextFile } from '../text-files.ts';
import { nameOf } from '../../../../shared/operate/config/row-changes.ts';

interface ReportOptions {
  html?: string;
  month?: string;
  week?: string;
}

const notes = `
Without --month and --week: the seven days that end today. Days are UTC. Figures come from the sums of \`daily\`, so calls
that were refused before anything was reserved are in none of them.`;

export function addReportCommand(program: Command, { onTables }: CommandContext): void {
  program
    .command('report')
    .description(
      'spend, margin, failures, slow channels, accounts near empty and open marks of a week or month',
    )
    .option('--html <file>', 'write it as one HTML file with plots, which loads nothing')
    .option('--month <month>', 'such as 2026-11')
    .option('--week <day>', 'the week, from Monday, that has this day, such as 2026-11-18')
    .addHelpText('after', notes)
    .action(
      onTables(async ({ ports, terminal }, { html, month, week }: ReportOptions) => {
        const view = await viewReport(ports, { month, week });
        if (html !== undefined) await writeTextFile(html, masked(reportPage(view)));
        printReport(terminal, view, html);
      }),
    );
}

// Prints a report: what a terminal has room for. The file has the rest.

const shown = 10;

/** @param file where it was written as HTML */
function printReport(terminal: Terminal, view: ReportView, file: string | undefined): void {
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

// The tables of a report on the terminal.

const modelTable = (models: readonly ServedGroup[]): string[][] => [
  ['MODEL', 'CALLS', 'FAILED', 'CHARGED', 'MARGIN'],
  ...models.map(({ name, figures }) => [
    name,
    grouped(figures.counts.calls ?? 0),
    percent(figures.counts.failures ?? 0, figures.counts.calls ?? 0),
    yuanText(figures.amounts.charged ?? 0n),
    yuanOrNone(marginOf(figures).earned),
  ]),
];

const channelTable = (channels: readonly ReportedChannel[]): string[][] => [
  ['CHANNEL', 'CALLS', 'FAILED', 'MARGIN', 'FIRST CONTENT P50', 'P95'],
  ...channels.map(({ name, figures, medianMs, slowMs }) => [
    name,
    grouped(figures.counts.calls ?? 0),
    percent(figures.counts.failures ?? 0, figures.counts.calls ?? 0),
    yuanOrNone(marginOf(figures).earned),
    seconds(medianMs),
    seconds(slowMs),
  ]),
];

const nearEmptyTable = (accounts: readonly NearEmptyAccount[]): string[][] => [
  ['NEAR EMPTY', 'BALANCE', 'A DAY', 'LASTS'],
  ...accounts.map(({ account, available, perDay, daysLeft }) => [
    account,
    yuanText(available),
    yuanText(perDay),
    lastsFor(daysLeft),
  ]),
];
