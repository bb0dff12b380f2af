/** A report as one HTML file: plots inline, no script, nothing loaded. Renders the view and reads nothing. */
import { yuanNumber } from '../../../shared/billing/amount.ts';
import { marginOf } from '../../../shared/operate/report/margin-of.ts';
import type { ReportView } from '../../../shared/operate/report/report-view.ts';
import { barPlot } from './bar-plot.ts';
import { html, Markup } from './markup.ts';
import { reportStyle } from './report-style.ts';
import { channelsTable, marksTable, nearEmptyTable, servedTable } from './report-tables.ts';
import { change, grouped, percent, yuanOrNone, yuanText } from './report-words.ts';

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
