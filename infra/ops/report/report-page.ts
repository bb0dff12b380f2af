/** A report as one HTML file, and the tables that it and the terminal have of it. Renders the view and reads nothing. */
import { grouped } from '../../../shared/operate/plan.ts';
import { yuanNumber, type NanoYuan } from '../../../shared/billing/price.ts';
import { nameOf } from '../../../shared/operate/config/row-changes.ts';
import type { Summed } from '../../../shared/operate/ledger/ledger.ts';
import { marginOf, type ReportView } from '../../../shared/operate/report.ts';
import { minuteText, percent, yuanText } from '../console/layout/figures.ts';
import { plot } from '../console/layout/plot.ts';
import { column, head, number, table, tiles, wide, type PageColumn } from '../console/layout/table.ts';
import { html, type Markup } from '../markup.ts';
import { fileOf } from './file.ts';

export function reportPage(view: ReportView): Promise<string> {
  const { stack, madeMs, period, problems, nearEmpty, marks } = view;
  return fileOf(
    `${stack}, ${period.title}`,
    html`<header>
        <h1>${period.title}</h1>
        <p class="lead">
          ${stack}${period.isRunning ? ', not over yet' : ''}. Days are UTC, amounts in yuan. Made
          ${minuteText(madeMs)} UTC.
        </p>
      </header>
      <main>
        ${tilesOf(view)} ${plots(view)}
        <details open>
          <summary>Figures by day</summary>
          ${servedTable('Day', view.days.slice(0, period.come))}
        </details>
        <h2>Models</h2>
        ${servedTable('Model', view.models)}
        <h2>Channels, slowest first</h2>
        ${longTable(view.channels, {
          of: 'channels',
          empty: 'No calls.',
          columns: [head('Channel', ({ name }) => name), ...pageColumns(channelColumns)],
        })}
        <h2>Accounts near empty</h2>
        ${longTable(nearEmpty, {
          of: 'accounts',
          empty: 'No account runs empty within 7 days at its pace.',
          columns: [head('Account', ({ account }) => account), ...pageColumns(nearEmptyColumns)],
        })}
        <h2>Open marks</h2>
        ${longTable(marks, {
          of: 'marks',
          empty: 'No row has a problem or a warning.',
          columns: [
            head('Row', (mark) => nameOf(mark)),
            column('Mark', ({ problem, warning }) =>
              problem === undefined ? wide(warning) : html`<span class="wide bad">${problem}</span>`,
            ),
          ],
        })}
        ${
          problems.length > 0 &&
          html`<h2>What could not be read</h2>
            <ul>
              ${problems.map((each) => html`<li class="warning">${each}</li>`)}
            </ul>`
        }
      </main>
      <footer>
        From the sums of the table <code>daily</code>. Calls that were refused before anything was reserved
        are in no figure. Margin: charges less what was bought, over the calls whose cost is known.
      </footer>`,
  );
}

/** What the terminal calls it and what the page calls it; without one of them it is for the other alone. */
export type ReportColumn<Row> = readonly [
  head: string,
  title: string,
  text: (row: Row) => string,
  isBad?: (row: Row) => boolean,
];

const chargedOf = ({ figures }: Summed): string => plainYuan(figures.amounts.charged ?? 0n);
const earnedOf = ({ figures }: Summed): string => plainYuan(marginOf(figures).earned);
const isLoss = ({ figures }: Summed): boolean => (marginOf(figures).earned ?? 0n) < 0n;

const servedTogether: ReportColumn<Summed>[] = [
  ['CALLS', 'Calls', ({ figures }) => grouped(figures.counts.calls ?? 0)],
  ['FAILED', 'Failed', ({ figures }) => failedShare(figures), ({ figures }) => isFailing(figures)],
];

export const failedShare = ({ counts }: Summed['figures']): string =>
  percent(counts.failures ?? 0, counts.calls ?? 0);

/** In red from 5 % on. */
const isFailing = ({ counts: { failures = 0, calls = 0 } }: Summed['figures']): boolean =>
  failures > 0 && failures >= 0.05 * calls;

export const servedColumns: ReportColumn<Summed>[] = [
  ...servedTogether,
  ['CHARGED', 'Charged', chargedOf],
  [
    '',
    'Bought',
    ({ figures }) => (marginOf(figures).knownCalls === 0 ? '-' : plainYuan(figures.amounts.bought ?? 0n)),
  ],
  ['MARGIN', 'Margin', earnedOf, isLoss],
];

export const channelColumns: ReportColumn<ReportView['channels'][number]>[] = [
  ...servedTogether,
  ['MARGIN', '', earnedOf],
  ['FIRST CONTENT P50', 'Half begin within', ({ medianMs }) => seconds(medianMs)],
  ['P95', '95 % begin within', ({ slowMs }) => seconds(slowMs)],
  ['', 'Charged', chargedOf],
  ['', 'Margin', earnedOf, isLoss],
];

export const nearEmptyColumns: ReportColumn<ReportView['nearEmpty'][number]>[] = [
  ['BALANCE', 'Balance', ({ available }) => plainYuan(available)],
  ['A DAY', 'Spends a day', ({ perDay }) => plainYuan(perDay)],
  ['LASTS', 'Lasts', ({ daysLeft }) => lastsFor(daysLeft), ({ daysLeft }) => daysLeft < 1],
];

/** With the minus of a keyboard, since a terminal prints it too. */
export const plainYuan = (amount: NanoYuan | undefined): string =>
  amount === undefined ? '-' : yuanText(amount).replace('−', '-');

/** Bounds of buckets; the last one has none. */
function seconds(milliseconds: number | undefined): string {
  if (milliseconds === undefined) return '-';
  return milliseconds === Infinity ? 'over 64 s' : `${milliseconds / 1000} s`;
}

function lastsFor(days: number): string {
  if (days <= 0) return 'empty';
  return days < 1 ? 'less than a day' : `${days.toFixed(1)} days`;
}

const pageColumns = <Row>(columns: readonly ReportColumn<Row>[]): PageColumn<Row>[] =>
  columns.flatMap(([, title, text, isBad]) =>
    title === ''
      ? []
      : [number(title, (row) => (isBad?.(row) ? html`<span class="bad">${text(row)}</span>` : text(row)))],
  );

/** Rows beyond these are counted: a page of 300 models is no report. */
const rowsMax = 31;

interface LongTable<Row> {
  of: string;
  empty: string;
  columns: readonly PageColumn<Row>[];
}

const longTable = <Row>(rows: readonly Row[], { of, empty, columns }: LongTable<Row>): Markup =>
  html`${table(rows.slice(0, rowsMax), { caption: of, empty, columns })}
  ${
    rows.length > rowsMax &&
    html`<p class="soft">
      and ${grouped(rows.length - rowsMax)} more ${of}: <code>report --json</code> has all
    </p>`
  }`;

const servedTable = (first: string, rows: readonly Summed[]): Markup =>
  longTable(rows, {
    of: `${first.toLowerCase()}s`,
    empty: 'No calls.',
    columns: [head(first, ({ name }) => name), ...pageColumns(servedColumns)],
  });

function tilesOf({ whole, before, nearEmpty, marks }: ReportView): Markup {
  const { calls = 0, failures = 0 } = whole.counts;
  const { charged = 0n } = whole.amounts;
  const { earned, knownCalls } = marginOf(whole);
  return tiles([
    { name: 'Charged', value: plainYuan(charged), note: compared(charged, before.amounts.charged ?? 0n) },
    {
      name: 'Margin',
      value: plainYuan(earned),
      note: `cost known of ${percent(knownCalls, calls)} of calls`,
      mark: earned !== undefined && earned < 0n && 'bad',
    },
    { name: 'Calls', value: grouped(calls), note: compared(calls, before.counts.calls ?? 0) },
    {
      name: 'Failed',
      value: failedShare(whole),
      note: `${grouped(failures)} calls; before: ${failedShare(before)}`,
      mark: isFailing(whole) && 'bad',
    },
    { name: 'Near empty', value: grouped(nearEmpty.length), note: 'accounts, within 7 days' },
    { name: 'Open marks', value: grouped(marks.length), note: 'rows with a problem or a warning' },
  ]);
}

/** `12 % more than before` */
function compared(now: bigint | number, before: bigint | number): string {
  if (Number(before) <= 0) return 'nothing before';
  const percents = 100 * (Number(now) / Number(before) - 1);
  if (Math.abs(percents) < 0.5) return 'as before';
  return `${Math.abs(percents).toFixed(0)} % ${percents > 0 ? 'more' : 'less'} than before`;
}

function plots({ days }: ReportView): Markup {
  const points = days.map(({ name }) => name);
  const valuesOf = (value: (figures: Summed['figures']) => number): number[] =>
    days.map(({ figures }) => value(figures));
  const charged = valuesOf(({ amounts }) => yuanNumber(amounts.charged ?? 0n));
  const bought = valuesOf(({ amounts }) => yuanNumber(amounts.bought ?? 0n));
  const calls = valuesOf(({ counts }) => counts.calls ?? 0);
  const shares = valuesOf(({ counts }) => (100 * (counts.failures ?? 0)) / (counts.calls || 1));
  return html`<div class="plots">
    ${plot({
      title: 'Charged and bought',
      unit: 'yuan',
      points,
      series: [
        { name: 'charged', tone: 'first', values: charged },
        { name: 'bought', tone: 'second', values: bought },
      ],
    })}
    ${plot({
      title: 'Calls',
      unit: 'by day',
      points,
      series: [{ name: 'calls', tone: 'first', values: calls }],
    })}
    ${plot({
      title: 'Failed',
      unit: '% of calls',
      points,
      series: [{ name: 'failed', tone: 'bad', values: shares }],
      words: (value) => `${Number(value.toPrecision(3))} %`,
    })}
  </div>`;
}
