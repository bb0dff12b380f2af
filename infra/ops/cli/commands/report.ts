/** The command `report`: a week or a month at a glance, on the terminal, as JSON, or as one HTML file to be sent. */
import type { DailyFigures } from '../../../../shared/billing/daily-figures.ts';
import { formatYuan, type NanoYuan } from '../../../../shared/billing/money.ts';
import { nameOf } from '../../../../shared/operate/config/row-changes.ts';
import type { Summed } from '../../../../shared/operate/ledger/ledger.ts';
import { formatCount, formatInteger, formatMoney, usageFailure } from '../../../../shared/operate/plan.ts';
import type { AttemptSummary } from '../../../../shared/operate/channels/channel-health.ts';
import { listMargins, marginColumns } from '../../../../shared/operate/margins.ts';
import { marginOf, viewReport, type ReportView } from '../../../../shared/operate/report.ts';
import { isoTime, utcMonth } from '../../../../shared/wire/iso-time.ts';
import { formatPercent, formatYuanShort, roundYuan } from '../../console/layout/figures.ts';
import { renderCallsPlot, renderChargesPlot } from '../../console/layout/plot.ts';
import { formatTime, head, number, renderTable, type PageColumn } from '../../console/layout/table.ts';
import { fileOf } from '../../html-file.ts';
import { html, maskKeys, nothing, type Markup } from '../../markup.ts';
import { defineView } from '../command.ts';
import { formatText, nameValues, formatTable, type Column, type Terminal } from '../terminal.ts';
import { writeTextFile } from '../text-files.ts';

export const reportCommand = defineView('report', {
  does: 'report spend, margin, failures, slow channels, low balances and warnings for a week or month',
  lists: true,
  takes: {
    '--html <file>': 'write a self-contained HTML file with charts',
    '--month <month>': 'month, such as 2026-11',
    '--week <day>': 'week (from Monday) that contains this day, such as 2026-11-18',
  },
  notes: `
Default: the last seven days, including today. --csv prints the margins of a month (default: this month) by model, channel and
customer; --html in the same command shows that month. Days are in UTC. Calls that were refused before a reservation are not included.`,
  examples: [
    'report',
    'report --week 2026-11-18 --html week.html',
    'report --month 2026-11 --json --stack relay',
    'report --month 2026-11 --csv --stack relay',
  ],
  async run({ ports, terminal }, { html: file, ...given }: { html?: string; month?: string; week?: string }) {
    const asked = { ...(terminal.format === 'csv' && { month: utcMonth(ports.clock.now()) }), ...given };
    if (terminal.format === 'csv') {
      if (asked.week !== undefined) throw usageFailure('--csv: use --month, sums of customers are monthly');
      const { rows, problems } = await listMargins(ports, asked.month);
      problems.forEach(terminal.remark);
      terminal.printCsv(marginColumns, rows);
      if (file === undefined) return;
    }
    const view = await viewReport(ports, asked);
    view.problems.forEach(terminal.remark);
    if (file !== undefined) {
      await writeTextFile(file, maskKeys(await renderReportFile(view)));
      terminal.remark(`Wrote ${file}.`);
    }
    terminal.printAs(formatReportJson(view), () => file === undefined && printReport(terminal, view));
  },
});

type WithFigures = Pick<Summed, 'figures'>;

const formatFailedShare = ({ counts }: DailyFigures): string =>
  formatPercent(counts.failures ?? 0, counts.calls ?? 0);

/** With the minus of a keyboard, since it is pasted into mails and sheets. */
const showYuan = (amount: NanoYuan | undefined): string =>
  amount === undefined ? '-' : formatMoney(roundYuan(amount)).replace('¥', '').replace('−', '-');

const marginYuanOf = ({ figures }: WithFigures): NanoYuan | undefined => marginOf(figures).earned;

const buildCountColumn = (name: keyof DailyFigures['counts']): Column<WithFigures> => [
  name,
  '',
  ({ figures }) => figures.counts[name] ?? 0,
];

/** Amounts are exact in JSON; people read as many decimals as one sees. */
const figureColumns: Column<WithFigures>[] = [
  [
    'calls',
    'CALLS',
    ({ figures }) => figures.counts.calls ?? 0,
    ({ figures }) => formatInteger(figures.counts.calls ?? 0),
  ],
  [
    'failures',
    'FAILED',
    ({ figures }) => figures.counts.failures ?? 0,
    ({ figures }) => formatFailedShare(figures),
  ],
  ...(['plan_calls', 'official_calls', 'prompt_tokens', 'completion_tokens'] as const).map(buildCountColumn),
  [
    'charged',
    'CHARGED',
    ({ figures }) => formatYuan(figures.amounts.charged ?? 0n),
    ({ figures }) => showYuan(figures.amounts.charged ?? 0n),
  ],
  [
    'bought',
    'BOUGHT',
    ({ figures }) => formatYuan(marginOf(figures).bought),
    ({ figures }) => showYuan(marginOf(figures).earned === undefined ? undefined : marginOf(figures).bought),
  ],
  buildCountColumn('bought_calls'),
  [
    'margin',
    'MARGIN',
    (row) => {
      const earned = marginYuanOf(row);
      return earned === undefined ? null : formatYuan(earned);
    },
    (row) => showYuan(marginYuanOf(row)),
  ],
];

const listServedColumns = (of: 'day' | 'model'): Column<Summed>[] => [
  [of, of.toUpperCase(), ({ name }) => name],
  ...figureColumns,
];

type Channel = ReportView['channels'][number];

/** Hides a channel's calls on the terminal: they are the ones that it answered or tried last, so its attempts include them. */
const hideCalls = ([name, head, ...shown]: Column<WithFigures>): Column<WithFigures> =>
  name === 'calls' ? [name, '', ...shown] : [name, head, ...shown];

/** A failed attempt counts against its channel, even if another channel answered the call. */
export function buildHealthColumns<Row>(healthOf: (row: Row) => AttemptSummary) {
  const buildTimeColumn = (name: 'p50' | 'p95', head: string): Column<Row> => [
    `first_content_${name}_ms`,
    head,
    (row) => healthOf(row)[`${name}Ms`] ?? null,
    (row) => formatTime(healthOf(row)[`${name}Ms`]),
  ];
  const attempts: Column<Row> = ['attempts', 'ATTEMPTS', (row) => healthOf(row).attempts];
  const failed: Column<Row> = [
    'failed_attempts',
    'FAILED',
    (row) => healthOf(row).failed,
    (row) => formatPercent(healthOf(row).failed, healthOf(row).attempts),
  ];
  return {
    counts: [attempts, failed],
    times: [buildTimeColumn('p50', 'FIRST CONTENT P50'), buildTimeColumn('p95', 'P95')],
  };
}

const health = buildHealthColumns<Channel>((row) => row.health);

const channelColumns: Column<Channel>[] = [
  ['channel', 'CHANNEL', ({ name }) => name],
  ...health.counts,
  [
    'failures',
    '',
    ({ health: { causes } }) => Object.fromEntries(causes.map(({ cause, count }) => [cause, count])),
  ],
  ...health.times,
  [
    'tokens_per_second',
    'TOKENS/S',
    (row) => row.health.tokensPerSecond ?? null,
    ({ health: { tokensPerSecond: speed } }) => (speed === undefined ? '-' : speed.toFixed(1)),
  ],
  ...figureColumns.filter(([name]) => name !== 'failures').map(hideCalls),
];

const nearEmptyColumns: Column<ReportView['nearEmpty'][number]>[] = [
  ['account', 'LOW BALANCE', ({ account }) => account],
  ['available', 'BALANCE', ({ available }) => formatYuan(available), ({ available }) => showYuan(available)],
  ['per_day', 'PER DAY', ({ perDay }) => formatYuan(perDay), ({ perDay }) => showYuan(perDay)],
  [
    'days_left',
    'LASTS',
    ({ daysLeft }) => Math.round(daysLeft * 10) / 10,
    ({ daysLeft: days }) => (days <= 0 ? 'empty' : days < 1 ? 'less than a day' : `${days.toFixed(1)} days`),
  ],
];

const creditColumns: Column<ReportView['credits'][number]>[] = [
  ['kind', 'GRANTED BY', ({ kind }) => kind],
  ['grants', 'GRANTS', ({ grants }) => grants],
  ['amount', 'AMOUNT', ({ amount }) => formatYuan(amount), ({ amount }) => showYuan(amount)],
];

const rowsMax = 10;

const titleOf = ({ period }: ReportView): string =>
  `${period.title}${period.isRunning ? ', until now' : ''} (UTC)`;

function summarizeReport({ whole, before }: ReportView): string {
  const { calls = 0 } = whole.counts;
  const { earned, knownCalls } = marginOf(whole);
  return (
    `${formatCount(calls, 'call')}, ${formatFailedShare(whole)} failed, ` +
    `${formatYuanShort(whole.amounts.charged ?? 0n)} charged (previous period: ${formatYuanShort(before.amounts.charged ?? 0n)}), ` +
    (earned === undefined
      ? 'margin unknown (no call has a known cost)'
      : `margin ${formatYuanShort(earned)} on the ${formatPercent(knownCalls, calls)} of calls with known cost`)
  );
}

const markTextOf = ({ problem, warning }: ReportView['marks'][number]): string => problem ?? warning ?? '';

function printReport({ print, printTable }: Terminal, view: ReportView): void {
  const { period, marks } = view;
  print(titleOf(view));
  print(summarizeReport(view));
  print('');
  printTable(formatTable(listServedColumns('day'), view.days.slice(0, period.come)));
  const tables = [
    formatTable(listServedColumns('model'), view.models),
    formatTable(channelColumns, view.channels),
    formatTable(nearEmptyColumns, view.nearEmpty),
    formatTable(creditColumns, view.credits),
  ];
  for (const rows of tables) {
    if (rows.length === 1) continue;
    print('');
    printTable(rows.slice(0, rowsMax + 1));
    if (rows.length > rowsMax + 1) print(`and ${rows.length - rowsMax - 1} more: use --json`);
  }
  if (marks.length === 0) return;
  print('');
  for (const mark of marks.slice(0, rowsMax)) print(`${nameOf(mark)}: ${markTextOf(mark)}`);
  if (marks.length > rowsMax)
    print(`and ${formatCount(marks.length - rowsMax, 'more warning')}: run \`check\``);
}

function renderReportFile(view: ReportView): Promise<string> {
  const { stack, period, marks, problems } = view;
  const days = view.days.slice(0, period.come);
  const points = days.map(({ name }) => name);
  return fileOf(
    `${stack}, ${period.title}`,
    html`<h1>${stack}: ${titleOf(view)}</h1>
      <p>${summarizeReport(view)}</p>
      ${renderChargesPlot(days, points, '¥ per day')} ${renderCallsPlot(days, points, 'per day')}
      ${renderFileTable('Days', listServedColumns('day'), days)}
      ${renderFileTable('Models', listServedColumns('model'), view.models)}
      ${renderFileTable('Channels, slowest first', channelColumns, view.channels)}
      ${renderFileTable('Low balances', nearEmptyColumns, view.nearEmpty)}
      ${renderFileTable('Grants', creditColumns, view.credits)}
      ${marks.length > 0 && html`<h2>Errors and warnings</h2>`}
      ${marks.map((mark) => html`<p>${nameOf(mark)}: ${markTextOf(mark)}</p>`)}
      ${problems.map((problem) => html`<p>Not included: ${problem}</p>`)}
      <p>Amounts are in yuan. Calls that were refused before a reservation are not included.</p>`,
  );
}

/** A page of 300 models is no report. */
const fileRowsMax = 31;

const renderFileTable = <Row>(title: string, columns: readonly Column<Row>[], rows: readonly Row[]): Markup =>
  html`<h2>${title}</h2>
    ${renderTable(rows.slice(0, fileRowsMax), {
      caption: title,
      empty: 'None.',
      isPlain: true,
      columns: columns
        .filter(([, name]) => name !== '')
        .map(([, name, value, text], at): PageColumn<Row> => {
          const titled = name.charAt(0) + name.slice(1).toLowerCase();
          return (at === 0 ? head : number)(titled, (row) => text?.(row) ?? formatText(value(row)));
        }),
    })}
    ${rows.length > fileRowsMax ? html`<p>And ${rows.length - fileRowsMax} more: see <code>report --json</code>.</p>` : nothing}`;

const valuesOf = <Row>(columns: readonly Column<Row>[], rows: readonly Row[]): object[] =>
  rows.map((row) => nameValues(columns, row));

function formatReportJson({ stack, madeMs, period, whole, before, ...view }: ReportView): object {
  return {
    stack,
    made: isoTime(madeMs),
    from: period.from,
    to: period.to,
    is_running: period.isRunning,
    whole: nameValues(figureColumns, { figures: whole }),
    before: { ...period.before, ...nameValues(figureColumns, { figures: before }) },
    days: valuesOf(listServedColumns('day'), view.days),
    models: valuesOf(listServedColumns('model'), view.models),
    channels: valuesOf(channelColumns, view.channels),
    near_empty: valuesOf(nearEmptyColumns, view.nearEmpty),
    credits: valuesOf(creditColumns, view.credits),
    marks: view.marks,
    problems: view.problems,
  };
}
