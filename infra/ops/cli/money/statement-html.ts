/** A statement as one HTML file for the customer: no script, nothing loaded. All text is escaped. */
import { formatYuan } from '../../../../shared/billing/amount.ts';
import type { DailyFigures } from '../../../../shared/billing/daily/daily-figures.ts';
import { failedNote, statementFigures } from '../../../../shared/operate/statements/statement-rows.ts';
import type { Statement } from '../../../../shared/operate/statements/statement.ts';

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

const escaped = (text: string): string => text.replaceAll(/[&<>"']/g, (found) => escapes[found] ?? '');

const style = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0 2rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid #8884; text-align: right; }
th:first-child, td:first-child, .text { text-align: left; }
.sum td { font-weight: 600; }
.problem { border: 2px solid #b00; padding: .5rem 1rem; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
@media print { body { margin: 0; } }`;

const cell = (text: string): string => `<td>${escaped(text)}</td>`;
const row = (cells: readonly string[], kind = ''): string =>
  `<tr${kind === '' ? '' : ` class="${kind}"`}>${cells.map(cell).join('')}</tr>`;

interface Table {
  caption: string;
  header: readonly string[];
  rows: readonly string[];
}

const table = ({ caption, header, rows }: Table): string =>
  `<table><caption>${escaped(caption)}</caption><thead><tr>${header
    .map((name) => `<th scope="col">${escaped(name)}</th>`)
    .join('')}</tr></thead><tbody>${rows.join('\n')}</tbody></table>`;

function figureCells(figures: DailyFigures): string[] {
  const each = statementFigures(figures);
  return [
    ...[
      each.calls,
      each.failed_calls,
      each.plan_calls,
      each.prompt_tokens,
      each.cached_tokens,
      each.completion_tokens,
    ].map(String),
    formatYuan(figures.amounts.charged ?? 0n),
  ];
}

const figureNames = ['Calls', 'Failed', 'On a plan', 'Input', 'of it cached', 'Output', 'Yuan'];

export function statementHtml(statement: Statement): string {
  const { account, month, opening, granted, charged, closing, grants, days, sum, isRunning } = statement;
  const title = `Statement of ${account}, ${month}${isRunning ? ' (until now)' : ''}`;
  const { problems } = statement;
  const note = failedNote(sum);
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escaped(title)}</title><style>${style}</style></head><body>
<h1>${escaped(title)}</h1>
${problems.length === 0 ? '' : `<div class="problem" role="alert"><strong>This does not add up. Do not send it.</strong><ul>${problems.map((problem) => `<li>${escaped(problem)}</li>`).join('')}</ul></div>`}
${table({
  caption: 'Balance, in yuan',
  header: ['', 'Yuan'],
  rows: [
    row([`Opening balance, ${month}-01`, formatYuan(opening)]),
    row(['+ top-ups and corrections', formatYuan(granted)]),
    row(['- calls', formatYuan(charged)]),
    row(['Closing balance', formatYuan(closing)], 'sum'),
  ],
})}
${table({
  caption: 'Top-ups and corrections',
  header: ['Time', 'Name', 'For', 'Yuan'],
  rows: grants.map(({ applied = '', grantId, reason = '', amount }) =>
    row([applied, grantId, reason, amount]),
  ),
})}
${table({
  caption: 'Calls by day and model; days are UTC',
  header: ['Day', 'Model', ...figureNames],
  rows: [
    ...days.map(({ day, model, figures }) => row([day, model, ...figureCells(figures)])),
    row(['All', '', ...figureCells(sum)], 'sum'),
  ],
})}
${note === undefined ? '' : `<p>${escaped(note)}</p>`}
</body></html>
`;
}
