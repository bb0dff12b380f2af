/** A report as one HTML file: plots inline, no script, nothing loaded. Renders the view and reads nothing. */
import { divideHalfUp, type NanoYuan, yuanNumber } from '../../../shared/billing/amount.ts';
import {
  marginOf,
  type ReportView,
  type NearEmptyAccount,
  type ServedGroup,
  type ReportedChannel,
} from '../../../shared/operate/report.ts';
import { barPlot } from './bar-plot.ts';
import { html, Markup, type Content } from './markup.ts';
import { nameOf, type Finding } from '../../../shared/operate/config/row-changes.ts';
import { colours, textFont } from '../../../shared/relay/page/page-kit.ts';

// Figures as a report writes them: rounded to what a reader compares.

/** 12345678 becomes `12,345,678`. */
export const grouped = (count: number | bigint): string =>
  String(count).replace(/\B(?=(\d{3})+(?!\d))/g, ',');

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
function change(now: bigint | number, before: bigint | number): string | undefined {
  if (Number(before) <= 0) return undefined;
  const share = Number(now) / Number(before) - 1;
  const size = Math.abs(100 * share);
  if (size < 0.5) return 'as before';
  return `${size.toFixed(0)} % ${share > 0 ? 'more' : 'less'}`;
}

/** Also in a mail or a chat that shows files: nothing but its own style is let in. */
const policy = "default-src 'none'; style-src 'unsafe-inline'";

export function reportPage(view: ReportView): string {
  const { stack, madeMs, period, problems, nearEmpty, marks } = view;
  const made = new Date(madeMs).toISOString().slice(0, 16).replace('T', ' ');
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta http-equiv="Content-Security-Policy" content="${policy}" />
        <title>${stack}, ${period.title}</title>
        <style>
          ${new Markup(reportStyle)}
        </style>
      </head>
      <body>
        <header>
          <h1>${period.title}</h1>
          <p class="lead">
            ${stack}${period.isRunning ? ', not over yet' : ''}. Days are UTC, amounts in yuan. Made ${made}
            UTC.
          </p>
        </header>
        <main>
          ${tiles(view)} ${plots(view)}
          <details open>
            <summary>Figures by day</summary>
            ${servedTable('Day', view.days.slice(0, period.come))}
          </details>
          <h2>Models</h2>
          ${view.models.length > 0 ? servedTable('Model', view.models) : none('No calls.')}
          <h2>Channels, slowest first</h2>
          ${view.channels.length > 0 ? channelsTable(view.channels) : none('No calls.')}
          <h2>Accounts near empty</h2>
          ${nearEmpty.length > 0 ? nearEmptyTable(nearEmpty) : none('No account runs empty within 7 days at its pace.')}
          <h2>Open marks</h2>
          ${marks.length > 0 ? marksTable(marks) : none('No row has a problem or a warning.')}
          ${
            problems.length > 0
              ? html`<h2>What could not be read</h2>
                  <ul>
                    ${problems.map((each) => html`<li class="warning">${each}</li>`)}
                  </ul>`
              : ''
          }
        </main>
        <footer>
          From the sums of the table <code>daily</code>. Calls that were refused before anything was reserved
          are in no figure. Margin: charges less what was bought, over the calls whose cost is known.
        </footer>
      </body>
    </html> `.text;
}

const none = (words: string): Markup => html`<p class="note">${words}</p>`;

function tiles({ whole, before, nearEmpty, marks }: ReportView): Markup {
  const { counts, amounts } = whole;
  const calls = counts.calls ?? 0;
  const { earned, knownCalls } = marginOf(whole);
  const failures = counts.failures ?? 0;
  const isLoss = earned !== undefined && earned < 0n;
  const isFailing = failures > 0 && failures >= 0.05 * calls;
  const charged = amounts.charged ?? 0n;
  const failedBefore = percent(before.counts.failures ?? 0, before.counts.calls ?? 0);
  return html`<ul class="tiles">
    ${tile('Charged', yuanText(charged), { note: compared(charged, before.amounts.charged ?? 0n) })}
    ${tile('Margin', yuanOrNone(earned), { note: `cost known of ${percent(knownCalls, calls)} of calls`, isBad: isLoss })}
    ${tile('Calls', grouped(calls), { note: compared(calls, before.counts.calls ?? 0) })}
    ${tile('Failed', percent(failures, calls), { note: `${grouped(failures)} calls; before: ${failedBefore}`, isBad: isFailing })}
    ${tile('Near empty', grouped(nearEmpty.length), { note: 'accounts, within 7 days' })}
    ${tile('Open marks', grouped(marks.length), { note: 'rows with a problem or a warning' })}
  </ul>`;
}

const tile = (
  name: string,
  value: string,
  { note, isBad = false }: { note: string; isBad?: boolean },
): Markup =>
  html`<li class="${isBad ? 'bad' : ''}">
    <span>${name}</span><strong>${value}</strong><span class="note">${note}</span>
  </li>`;

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

// The tables of a report's page.

interface Row {
  name: string;
  values: Value[];
}

interface Value {
  content: Content;
  tone?: string;
}

/** Rows beyond these are counted: a page of 300 models is no report. */
const rowsMax = 31;

function table(columns: readonly string[], rows: readonly Row[], of: string): Markup {
  const [first, ...others] = columns;
  const more = rows.length - rowsMax;
  return html`<div class="scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">${first}</th>
            ${others.map((each) => html`<th scope="col" class="number">${each}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${rows.slice(0, rowsMax).map(
            ({ name, values }) =>
              html`<tr>
                <th scope="row">${name}</th>
                ${values.map(({ content, tone = '' }) => html`<td class="number ${tone}">${content}</td>`)}
              </tr> `,
          )}
        </tbody>
      </table>
    </div>
    ${more > 0 ? html`<p class="note">and ${grouped(more)} more ${of}: <code>report --json</code> has all</p>` : ''}`;
}

const plain = (content: Content): Value => ({ content });

/** In red from 5 % on. */
function failed({ figures: { counts } }: ServedGroup): Value {
  const [failures, calls] = [counts.failures ?? 0, counts.calls ?? 0];
  return {
    content: percent(failures, calls),
    ...(failures >= 0.05 * calls && failures > 0 && { tone: 'bad' }),
  };
}

const calls = ({ figures }: ServedGroup): Value => plain(grouped(figures.counts.calls ?? 0));

function margin({ figures }: ServedGroup): Value {
  const { earned } = marginOf(figures);
  return { content: yuanOrNone(earned), ...(earned !== undefined && earned < 0n && { tone: 'bad' }) };
}

const servedTable = (first: string, groups: readonly ServedGroup[]): Markup =>
  table(
    [first, 'Calls', 'Failed', 'Charged', 'Bought', 'Margin'],
    groups.map((each) => ({
      name: each.name,
      values: [
        calls(each),
        failed(each),
        plain(yuanText(each.figures.amounts.charged ?? 0n)),
        plain(marginOf(each.figures).knownCalls === 0 ? '-' : yuanText(each.figures.amounts.bought ?? 0n)),
        margin(each),
      ],
    })),
    'rows',
  );

const channelsTable = (channels: readonly ReportedChannel[]): Markup =>
  table(
    ['Channel', 'Calls', 'Failed', 'Half begin within', '95 % begin within', 'Charged', 'Margin'],
    channels.map((each) => ({
      name: each.name,
      values: [
        calls(each),
        failed(each),
        plain(seconds(each.medianMs)),
        plain(seconds(each.slowMs)),
        plain(yuanText(each.figures.amounts.charged ?? 0n)),
        margin(each),
      ],
    })),
    'channels',
  );

const nearEmptyTable = (accounts: readonly NearEmptyAccount[]): Markup =>
  table(
    ['Account', 'Balance', 'Spends a day', 'Lasts'],
    accounts.map(({ account, available, perDay, daysLeft }) => ({
      name: account,
      values: [
        plain(yuanText(available)),
        plain(yuanText(perDay)),
        { content: lastsFor(daysLeft), ...(daysLeft < 1 && { tone: 'bad' }) },
      ],
    })),
    'accounts',
  );

function marksTable(marks: readonly Finding[]): Markup {
  const more = marks.length - rowsMax;
  return html`<div class="scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">Row</th>
            <th scope="col">Mark</th>
          </tr>
        </thead>
        <tbody>
          ${marks.slice(0, rowsMax).map(
            (mark) =>
              html`<tr>
                <th scope="row">${nameOf(mark)}</th>
                <td class="words ${mark.problem === undefined ? 'warning' : 'bad'}">
                  ${mark.problem ?? mark.warning}
                </td>
              </tr> `,
          )}
        </tbody>
      </table>
    </div>
    ${more > 0 ? html`<p class="note">and ${grouped(more)} more: <code>check</code> has all</p>` : ''}`;
}

// The style sheet of a report: light and dark as the reader's system is, always light on paper.

const reportStyle = `
:root { color-scheme: light dark; ${colours.light} --first: var(--mark); --second: #a9b1ea; }
@media screen and (prefers-color-scheme: dark) { :root { ${colours.dark} --second: #565d9c; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 2rem 1.5rem 3rem; background: var(--back); color: var(--ink); font: 15px/1.5 ${textFont}; }
h1 { font-size: 1.6rem; margin: 0; letter-spacing: -.015em; }
h2 { font-size: 1.1rem; margin: 2.2rem 0 .6rem; }
.lead, .note, figcaption .unit, .tiles .note { color: var(--soft); }
.lead { margin: .2rem 0 1.4rem; }
.note { font-size: .9em; margin: .4rem 0; }
.tiles { list-style: none; margin: 0; padding: 0; display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: .75rem; }
.tiles li { border: 1px solid var(--line); border-radius: 8px; padding: .7rem .9rem; display: flex; flex-direction: column; }
.tiles strong { font-size: 1.45rem; font-weight: 620; font-variant-numeric: tabular-nums; letter-spacing: -.01em; }
.tiles span { font-size: .9em; }
.bad strong, td.bad { color: var(--bad); }
.warning { color: var(--warn); }
.plots { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1.5rem; margin-top: 1.6rem; }
.plots > :first-child { grid-column: 1 / -1; }
.plot { margin: 0; break-inside: avoid; }
figcaption { font-weight: 600; }
.legend { list-style: none; display: flex; gap: 1rem; margin: .1rem 0 0; padding: 0; font-size: .9em; color: var(--soft); }
.legend li::before { content: ""; display: inline-block; width: .7em; height: .7em; margin-right: .4em; border-radius: 2px; background: currentColor; }
.legend .first::before { background: var(--first); }
.legend .second::before { background: var(--second); }
.legend .bad::before { background: var(--bad); }
svg { display: block; width: 100%; height: auto; }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .tick { fill: var(--soft); font-size: 12px; font-variant-numeric: tabular-nums; }
svg .first { fill: var(--first); }
svg .second { fill: var(--second); }
svg .bad { fill: var(--bad); }
.plots > :not(:first-child) .tick { font-size: 18px; }
svg .reach { fill: transparent; }
svg g:hover .reach { fill: var(--panel); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .35rem .9rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: baseline; }
th:last-child, td:last-child { padding-right: 0; }
thead th { color: var(--soft); font-weight: 500; font-size: .9em; white-space: nowrap; }
tbody th { font-weight: 500; overflow-wrap: anywhere; min-width: 8rem; }
.number { text-align: right; white-space: nowrap; }
td.words { overflow-wrap: anywhere; }
tr { break-inside: avoid; }
summary { cursor: pointer; color: var(--soft); margin-top: 1.2rem; }
footer { margin-top: 2.5rem; padding-top: .8rem; border-top: 1px solid var(--line); color: var(--soft); font-size: .9em; }
@media screen and (max-width: 40rem) {
  body { padding: 1.2rem 1rem 2rem; }
  .tiles { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  .plots { grid-template-columns: minmax(0, 1fr); }
  svg .tick { font-size: 18px; }
}
@media print {
  @page { margin: 14mm; }
  body { max-width: none; padding: 0; font-size: 10.5pt; }
  h2 { break-after: avoid; }
  thead { display: table-header-group; }
  svg rect, .legend li::before { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
`;
