/** A report as one HTML file, and the tables that it and the terminal have of it. Renders the view and reads nothing. */
import { divideHalfUp, yuanNumber, type NanoYuan } from '../../../shared/billing/amount.ts';
import { nameOf } from '../../../shared/operate/config/row-changes.ts';
import {
  marginOf,
  type NearEmptyAccount,
  type ServedGroup,
  type ReportedChannel,
  type ReportView,
} from '../../../shared/operate/report.ts';
import { grouped } from '../console/layout/figures.ts';
import { column, head, number, table, tiles, wide, type PageColumn } from '../console/layout/table.ts';
import { html, nothing, type Markup } from '../markup.ts';
import { barPlot } from './bar-plot.ts';
import { fileOf } from './file.ts';

export function reportPage(view: ReportView): Promise<string> {
  const { stack, madeMs, period, problems, nearEmpty, marks } = view;
  const made = new Date(madeMs).toISOString().slice(0, 16).replace('T', ' ');
  return fileOf(
    `${stack}, ${period.title}`,
    html`<header>
        <h1>${period.title}</h1>
        <p class="lead">
          ${stack}${period.isRunning ? ', not over yet' : ''}. Days are UTC, amounts in yuan. Made ${made}
          UTC.
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
          problems.length > 0
            ? html`<h2>What could not be read</h2>
                <ul>
                  ${problems.map((each) => html`<li class="warning">${each}</li>`)}
                </ul>`
            : nothing
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

const callsOf = ({ figures }: ServedGroup): string => grouped(figures.counts.calls ?? 0);
const chargedOf = ({ figures }: ServedGroup): string => yuanText(figures.amounts.charged ?? 0n);
const earnedOf = ({ figures }: ServedGroup): string => yuanOrNone(marginOf(figures).earned);
const isLoss = ({ figures }: ServedGroup): boolean => (marginOf(figures).earned ?? 0n) < 0n;

const servedTogether: ReportColumn<ServedGroup>[] = [
  ['CALLS', 'Calls', callsOf],
  [
    'FAILED',
    'Failed',
    ({ figures: { counts } }) => percent(counts.failures ?? 0, counts.calls ?? 0),
    ({ figures: { counts } }) => isFailing(counts.failures ?? 0, counts.calls ?? 0),
  ],
];

/** In red from 5 % on. */
const isFailing = (failures: number, calls: number): boolean => failures > 0 && failures >= 0.05 * calls;

export const servedColumns: ReportColumn<ServedGroup>[] = [
  ...servedTogether,
  ['CHARGED', 'Charged', chargedOf],
  [
    '',
    'Bought',
    ({ figures }) => (marginOf(figures).knownCalls === 0 ? '-' : yuanText(figures.amounts.bought ?? 0n)),
  ],
  ['MARGIN', 'Margin', earnedOf, isLoss],
];

export const channelColumns: ReportColumn<ReportedChannel>[] = [
  ...servedTogether,
  ['MARGIN', '', earnedOf],
  ['FIRST CONTENT P50', 'Half begin within', ({ medianMs }) => seconds(medianMs)],
  ['P95', '95 % begin within', ({ slowMs }) => seconds(slowMs)],
  ['', 'Charged', chargedOf],
  ['', 'Margin', earnedOf, isLoss],
];

export const nearEmptyColumns: ReportColumn<NearEmptyAccount>[] = [
  ['BALANCE', 'Balance', ({ available }) => yuanText(available)],
  ['A DAY', 'Spends a day', ({ perDay }) => yuanText(perDay)],
  ['LASTS', 'Lasts', ({ daysLeft }) => lastsFor(daysLeft), ({ daysLeft }) => daysLeft < 1],
];

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
    rows.length > rowsMax
      ? html`<p class="soft">
          and ${grouped(rows.length - rowsMax)} more ${of}: <code>report --json</code> has all
        </p>`
      : nothing
  }`;

const servedTable = (first: string, rows: readonly ServedGroup[]): Markup =>
  longTable(rows, {
    of: `${first.toLowerCase()}s`,
    empty: 'No calls.',
    columns: [head(first, ({ name }) => name), ...pageColumns(servedColumns)],
  });

const badIf = (isBad: boolean) => (isBad ? { mark: 'bad' as const } : {});

function tilesOf({ whole, before, nearEmpty, marks }: ReportView): Markup {
  const { counts, amounts } = whole;
  const calls = counts.calls ?? 0;
  const { earned, knownCalls } = marginOf(whole);
  const failures = counts.failures ?? 0;
  const charged = amounts.charged ?? 0n;
  const failedBefore = percent(before.counts.failures ?? 0, before.counts.calls ?? 0);
  return tiles([
    { name: 'Charged', value: yuanText(charged), note: compared(charged, before.amounts.charged ?? 0n) },
    {
      name: 'Margin',
      value: yuanOrNone(earned),
      note: `cost known of ${percent(knownCalls, calls)} of calls`,
      ...badIf(earned !== undefined && earned < 0n),
    },
    { name: 'Calls', value: grouped(calls), note: compared(calls, before.counts.calls ?? 0) },
    {
      name: 'Failed',
      value: percent(failures, calls),
      note: `${grouped(failures)} calls; before: ${failedBefore}`,
      ...badIf(isFailing(failures, calls)),
    },
    { name: 'Near empty', value: grouped(nearEmpty.length), note: 'accounts, within 7 days' },
    { name: 'Open marks', value: grouped(marks.length), note: 'rows with a problem or a warning' },
  ]);
}

const compared = (now: bigint | number, earlier: bigint | number): string => {
  const words = change(now, earlier);
  return words === undefined ? 'nothing before' : words === 'as before' ? words : `${words} than before`;
};

function plots({ days }: ReportView): Markup {
  const names = days.map(({ name }) => name);
  const charged = days.map(({ figures }) => yuanNumber(figures.amounts.charged ?? 0n));
  const bought = days.map(({ figures }) => yuanNumber(figures.amounts.bought ?? 0n));
  const shares = days.map(({ figures: { counts } }) =>
    (counts.calls ?? 0) === 0 ? 0 : (100 * (counts.failures ?? 0)) / (counts.calls ?? 1),
  );
  return html`<div class="plots">
    ${barPlot({
      title: 'Charged and bought',
      unit: 'yuan',
      days: names,
      series: [
        { name: 'charged', tone: 'first', values: charged },
        { name: 'bought', tone: 'second', values: bought },
      ],
      words: shortNumber,
    })}
    ${barPlot({
      title: 'Calls',
      unit: 'by day',
      days: names,
      series: [
        { name: 'calls', tone: 'first', values: days.map(({ figures }) => figures.counts.calls ?? 0) },
      ],
      words: shortNumber,
    })}
    ${barPlot({
      title: 'Failed',
      unit: '% of calls',
      days: names,
      series: [{ name: 'failed', tone: 'bad', values: shares }],
      words: (value) => `${Number(value.toPrecision(3))} %`,
    })}
  </div>`;
}

/** For axes: `12.5K`. */
function shortNumber(value: number): string {
  const [limit, unit] =
    [[1e9, 'G'] as const, [1e6, 'M'] as const, [1e4, 'K'] as const].find(([from]) => value >= from) ?? [];
  if (limit === undefined || unit === undefined) return grouped3(value);
  return `${Number((value / (unit === 'K' ? 1000 : limit)).toPrecision(3))}${unit}`;
}

const grouped3 = (value: number): string => {
  const rounded = Number(value.toPrecision(3));
  return rounded >= 1000 ? grouped(rounded) : String(rounded);
};

/** Two decimals; of less than a cent four, and of less than that what there is. */
export function yuanText(amount: NanoYuan): string {
  const size = amount < 0n ? -amount : amount;
  const decimals = size === 0n || size >= 10_000_000n ? 2 : size >= 100_000n ? 4 : 9;
  const digits = divideHalfUp(size, 10n ** BigInt(9 - decimals))
    .toString()
    .padStart(decimals + 1, '0');
  return `${amount < 0n ? '-' : ''}${grouped(BigInt(digits.slice(0, -decimals)))}.${digits.slice(-decimals)}`;
}

export const yuanOrNone = (amount: NanoYuan | undefined): string =>
  amount === undefined ? '-' : yuanText(amount);

export const percent = (part: number, whole: number): string =>
  whole === 0 ? '-' : `${((100 * part) / whole).toFixed(1)} %`;

/** Bounds of buckets; the last one has none. */
export function seconds(milliseconds: number | undefined): string {
  if (milliseconds === undefined) return '-';
  return milliseconds === Infinity ? 'over 64 s' : `${milliseconds / 1000} s`;
}

export function lastsFor(days: number): string {
  if (days <= 0) return 'empty';
  return days < 1 ? 'less than a day' : `${days.toFixed(1)} days`;
}

/** `12 % more`. Undefined: there is nothing to compare with. */
export function change(now: bigint | number, before: bigint | number): string | undefined {
  if (Number(before) <= 0) return undefined;
  const share = Number(now) / Number(before) - 1;
  const size = Math.abs(100 * share);
  if (size < 0.5) return 'as before';
  return `${size.toFixed(0)} % ${share > 0 ? 'more' : 'less'}`;
}
