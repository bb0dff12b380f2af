/** Prints statements and comparisons with invoices. */
import { formatYuan } from '../../../../shared/billing/amount.ts';
import { Failure } from '../../../../shared/operate/operator-failure.ts';
import type {
  ReconciledModel,
  Reconciliation,
} from '../../../../shared/operate/statements/reconcile-channel.ts';
import type { Statement } from '../../../../shared/operate/statements/statement.ts';
import {
  failedNote,
  statementColumns,
  statementFigures,
  statementRows,
} from '../../../../shared/operate/statements/statement-rows.ts';
import type { Terminal } from '../terminal/terminal.ts';

/** Throws a Failure if it does not add up, before anything is printed unless `isMarked`. */
export function printStatement(
  terminal: Terminal,
  statement: Statement,
  { isMarked }: { isMarked: boolean },
): void {
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

export function printReconciliation(terminal: Terminal, found: Reconciliation): void {
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
