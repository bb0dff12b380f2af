/** The commands that put the relay's sums beside what others reckon: statements for customers, invoices of vendors. */
import { Option, type Command } from 'commander';
import {
  reconcileChannel,
  type ReconcileInput,
  type ReconciledModel,
  type Reconciliation,
} from '../../../../shared/operate/reconcile.ts';
import {
  viewStatement,
  type Statement,
  failedNote,
  statementColumns,
  statementFigures,
  statementRows,
} from '../../../../shared/operate/statement.ts';
import { type CommandContext, listing } from '../command.ts';
import { csvLines, delimiterOf, masked, type Terminal } from '../terminal.ts';
import { parseDecimalText, parseNumber } from '../option-values.ts';
import { readSheetFile, writeTextFile } from '../text-files.ts';
import { formatYuan } from '../../../../shared/billing/amount.ts';
import { Failure } from '../../../../shared/operate/plan.ts';
import type { DailyFigures } from '../../../../shared/billing/daily-figures.ts';

interface StatementOptions {
  month: string;
  html?: string;
  marked?: boolean;
  /** Seconds. */
  wait: number;
}

export function addStatementCommands(program: Command, { onTables }: CommandContext): void {
  listing(
    program
      .command('statement')
      .description("a customer's month: opening + grants - charges = closing, exact, by day and model"),
  )
    .argument('<account>', 'as `customer list` shows it')
    .requiredOption('--month <month>', 'such as 2026-10, in UTC')
    .option('--html <file>', 'write one HTML file too, ready to send')
    .option('--marked', 'make it although it does not add up, with a mark (default: it is refused)')
    .option('--wait <seconds>', 'how long to wait until the sums have the last calls', parseNumber, 15)
    .action(
      onTables(
        async (
          { ports, terminal },
          account: string,
          { month, html, marked = false, wait }: StatementOptions,
        ) => {
          const statement = await viewStatement(ports, { account, month, waitMs: wait * 1000 });
          printStatement(terminal, statement, { isMarked: marked });
          if (html === undefined) return;
          await writeTextFile(html, masked(statementHtml(statement)));
          terminal.remark(`${html} has it as HTML`);
        },
      ),
    );

  addReconcile(program, { onTables });
}

function addReconcile(program: Command, { onTables }: Pick<CommandContext, 'onTables'>): void {
  listing(
    program
      .command('reconcile')
      .description("what calls of a channel cost by its row, beside the vendor's invoice, by model"),
  )
    .argument('<channel>', 'as `channel list` shows it')
    .argument(
      '<file>',
      "the vendor's CSV (commas, semicolons or tabs), with a model and an amount in each line",
    )
    .requiredOption('--month <month>', 'such as 2026-10, in UTC')
    .option('--rate <yuan>', "yuan for one unit of the invoice's currency", parseDecimalText, '1')
    .option('--model-column <name>', 'the column of models, in any case', 'Model')
    .option('--amount-column <name>', 'the column of amounts, in any case', 'Amount')
    .addOption(
      new Option('--decimal <mark>', 'what stands before decimals (default: dot, if that is clear)').choices(
        Object.keys(decimalMarks),
      ),
    )
    .action(
      onTables(
        async ({ ports, terminal }, ...[channel, file, options]: [string, string, ReconcileOptions]) => {
          const { decimal, ...asked } = options;
          const text = await readSheetFile(file);
          const delimiter = delimiterOf(text);
          printReconciliation(
            terminal,
            await reconcileChannel(ports, {
              ...asked,
              channel,
              decimal: decimal && decimalMarks[decimal],
              text: { delimiter, lines: csvLines(text, delimiter) },
            }),
          );
        },
      ),
    );
}

const decimalMarks = { dot: '.', comma: ',' } as const;

interface ReconcileOptions extends Omit<ReconcileInput, 'channel' | 'text' | 'decimal'> {
  decimal?: keyof typeof decimalMarks;
}

// Prints statements and comparisons with invoices.

/** Throws a Failure if it does not add up, before anything is printed unless `isMarked`. */
function printStatement(terminal: Terminal, statement: Statement, { isMarked }: { isMarked: boolean }): void {
  const { account, month, opening, granted, charged, closing, problems, isRunning } = statement;
  if (problems.length > 0 && !isMarked) refuse(terminal, statement);
  if (terminal.format === 'json') {
    terminal.printJson({
      account,
      month,
      opening: formatYuan(opening),
      granted: formatYuan(granted),
      charged: formatYuan(charged),
      closing: formatYuan(closing),
      running: isRunning,
      problems,
      lines: statementRows(statement),
    });
  } else if (terminal.format === 'csv') {
    terminal.printList({
      columns: statementColumns,
      rows: statementRows(statement),
      table: () => [],
      empty: '',
    });
  } else printText(terminal, statement);
  for (const problem of problems) terminal.warn([`does not add up: ${problem}`]);
}

function refuse({ remark }: Terminal, { account, month, problems }: Statement): never {
  problems.forEach(remark);
  throw new Failure(
    `the statement of ${account} for ${month} does not add up, so it is not made: run \`audit --account ${account}\`, and ` +
      '`audit --rebuild-daily` for sums that older versions wrote; --marked makes it with a mark',
  );
}

function printText(terminal: Terminal, statement: Statement): void {
  const { account, month, opening, granted, charged, closing, grants, days, sum, isRunning } = statement;
  terminal.print(`${account}, ${month}${isRunning ? ' (until now)' : ''}, in yuan; days are UTC`);
  terminal.printTable([
    ['  opening', formatYuan(opening)],
    ['  + granted', formatYuan(granted)],
    ['  - charged', formatYuan(charged)],
    ['  closing', formatYuan(closing)],
  ]);
  for (const { applied = '', grantId, amount, reason = '' } of grants)
    terminal.print(`  ${applied} grant ${grantId}: ${amount} ${reason}`.trimEnd());
  if (days.length === 0) return terminal.print('  no calls');
  terminal.printTable([
    ['  DAY', 'MODEL', 'CALLS', 'FAILED', 'ON A PLAN', 'INPUT', 'OUTPUT', 'CHARGED'],
    ...days.map(cellsOf),
  ]);
  const note = failedNote(sum);
  if (note !== undefined) terminal.print(`  ${note}`);
}

function cellsOf({ day, model, figures }: Statement['days'][number]): string[] {
  const each = statementFigures(figures);
  const counts = [each.calls, each.failed_calls, each.plan_calls, each.prompt_tokens, each.completion_tokens];
  return [`  ${day}`, model, ...counts.map(String), formatYuan(figures.amounts.charged ?? 0n)];
}

const reconciledJson = ({ model, own, bought, invoiced, difference, percent }: ReconciledModel) => ({
  model,
  calls: own?.counts.calls ?? 0,
  bought: own ? formatYuan(bought) : null,
  invoiced: invoiced === undefined ? null : formatYuan(invoiced),
  difference: formatYuan(difference),
  percent: percent === undefined ? null : Number(percent),
  only: own === undefined ? 'invoice' : invoiced === undefined ? 'relay' : null,
});

function printReconciliation(terminal: Terminal, found: Reconciliation): void {
  const { channel, month, models, all, invoice, warnings } = found;
  const { columns, decimal, totals } = invoice;
  const rows = [...models, all].map(reconciledJson);
  terminal.print(
    `${channel}, ${month}: the columns ${columns.model} and ${columns.amount} of the invoice (decimals after a ${decimal === '.' ? 'point' : 'comma'}); in yuan`,
  );
  terminal.printList({
    columns: ['model', 'calls', 'bought', 'invoiced', 'difference', 'percent', 'only'],
    rows,
    table: () => [
      ['MODEL', 'CALLS', 'BOUGHT', 'INVOICED', 'DIFFERENCE', '%', 'ONLY IN'],
      ...rows.map(({ model, calls, bought, invoiced, difference, percent, only }) => [
        model,
        String(calls),
        bought ?? '-',
        invoiced ?? '-',
        difference,
        percent === null ? '-' : percent.toFixed(1),
        only === null || model === 'all' ? '' : `the ${only}`,
      ]),
    ],
    empty: '',
  });
  if (totals.length > 0) terminal.remark(`totals of the invoice, not counted: line ${totals.join(', ')}`);
  terminal.warn(warnings);
}

// A statement as one HTML file for the customer: no script, nothing loaded. All text is escaped.

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

function statementHtml(statement: Statement): string {
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
