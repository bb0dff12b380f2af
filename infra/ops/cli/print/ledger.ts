/** Prints the ledger and its audit. */
import { formatYuan } from '../../../../shared/billing/amount.ts';
import { type LedgerRow, ledgerTimeMs } from '../../../../shared/billing/ledger-row.ts';
import { cacheWords } from '../../../../shared/operate/requests/cache-words.ts';
import type { LedgerAudit } from '../../../../shared/operate/ledger/audit-ledger.ts';
import { ledgerJson } from '../../../../shared/operate/ledger/ledger-view.ts';
import type { LedgerList } from '../../../../shared/operate/ledger/list-ledger.ts';
import type { LossOutcome } from '../../../../shared/operate/ledger/repair-losses.ts';
import type { LedgerPage } from '../../../../shared/operate/ledger/select-rows.ts';
import type { LedgerSum, LedgerTotals } from '../../../../shared/operate/ledger/total-ledger.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import { Failure } from '../../../../shared/operate/operator-failure.ts';
import { csvRows } from '../terminal/csv.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function printLedger(terminal: Terminal, { rows, count, problems }: LedgerList): void {
  problems.forEach(terminal.remark);
  terminal.printList({
    columns: csvColumns,
    rows: rows.map(ledgerJson),
    table: () => [ledgerHead, ...rows.map(ledgerCells)],
    empty: 'no ledger rows',
  });
  if (count > rows.length)
    terminal.remark(`the newest ${rows.length} of ${count}: see --limit, --from, --csv`);
}

const ledgerHead = ['BEGAN', 'ACCOUNT', 'ID', 'KIND', 'MODEL', 'TOKENS', 'YUAN', 'NOTE'];

function ledgerCells(row: LedgerRow): string[] {
  const start = [isoTime(ledgerTimeMs(row)), row.account, row.id, row.kind];
  if (row.kind === 'grant')
    return [...start, '-', '-', `${row.amount > 0n ? '+' : ''}${formatYuan(row.amount)}`, row.reason];
  const { prompt_tokens: input, completion_tokens: output } = row;
  const tokens = input === undefined ? '-' : `${input}+${output ?? 0}`;
  const notes = [
    row.plan_slot === undefined ? '' : `plan ${row.plan_slot}`,
    row.official ? `official, would cost ${formatYuan(row.cost ?? 0n)}` : '',
    cacheWords(row),
    row.estimated ? `estimated${row.flag === undefined ? '' : ` (${row.flag})`}` : '',
    row.end === 'completed' ? '' : (row.end ?? ''),
  ];
  return [
    ...start,
    row.model,
    tokens,
    formatYuan(row.charge),
    notes.filter((note) => note !== '').join(', '),
  ];
}

/**
 * The CSV columns, always all of them, so that files of different days have the same columns. New columns go to
 * the end, because programs may count them.
 */
const csvColumns =
  'began booked account id kind endpoint model key charge reserved prompt_tokens completion_tokens estimated end price plan_slot official cost amount reason cached_tokens cache_write_tokens cache_write_1h_tokens channel upstream_model bought first_content_ms flag'.split(
    ' ',
  );

/** Prints each page when it is read, because all rows together may not fit into memory. */
export async function printLedgerCsv(terminal: Terminal, pages: AsyncIterable<LedgerPage>): Promise<void> {
  terminal.printCsv([csvColumns]);
  for await (const { rows, problems } of pages) {
    problems.forEach(terminal.remark);
    const cells = rows.map(ledgerJson);
    terminal.printCsv(csvRows(csvColumns, cells).slice(1));
  }
}

export function printTotals(terminal: Terminal, { by, totals, all, problems }: LedgerTotals): void {
  problems.forEach(terminal.remark);
  const head = [...by, ...sumColumns];
  const rows = totals.map(({ groups, sum }) => [...groups, ...sumCells(sum)]);
  terminal.printList({
    columns: head,
    rows: rows.map((row) => Object.fromEntries(head.map((name, at) => [name, row[at]]))),
    table: () => [head.map((name) => name.toUpperCase()), ...rows],
    empty: 'no ledger rows',
  });
  if (terminal.format !== 'text' || rows.length === 0) return;
  terminal.print(
    `all: ${all.calls} calls, ${formatYuan(all.charged)} yuan charged, ${formatYuan(all.granted)} granted`,
  );
  terminal.print(marginWords(all));
}

const sumColumns =
  'calls prompt_tokens completion_tokens charged official granted cached_tokens cache_write_tokens cache_write_1h_tokens bought bought_calls bought_charged margin'.split(
    ' ',
  );

const sumCells = (sum: LedgerSum): string[] => [
  ...[sum.calls, sum.promptTokens, sum.completionTokens].map(String),
  ...[sum.charged, sum.official, sum.granted].map(formatYuan),
  ...[sum.cachedTokens, sum.cacheWriteTokens, sum.cacheWrite1hTokens].map(String),
  formatYuan(sum.bought),
  String(sum.boughtCalls),
  formatYuan(sum.boughtCharged),
  sum.boughtCalls > 0 ? formatYuan(sum.boughtCharged - sum.bought) : '',
];

/** A margin compares like with like: it is over the calls whose cost is known, and says how many these are. */
const marginWords = ({ calls, bought, boughtCalls, boughtCharged }: LedgerSum): string =>
  boughtCalls === 0
    ? 'margin: unknown, no call has a known cost'
    : `margin: ${formatYuan(boughtCharged - bought)} yuan over the ${boughtCalls} of ${calls} calls whose cost is known, ` +
      `which were charged ${formatYuan(boughtCharged)}`;

/** Closes that could not be written are not printed: they are findings of the audit. */
export function printRepaired(terminal: Terminal, outcomes: LossOutcome[]): void {
  for (const each of outcomes) {
    if (each.outcome === 'not closed') continue;
    const charge = `${formatYuan(each.charge)} yuan`;
    const words = {
      closed: `is closed now, charged ${charge}`,
      'charged late': `had expired, charged ${charge} more`,
      'closed before': 'was closed already, as it should be',
    };
    terminal.remark(`${each.account}: request ${each.id} ${words[each.outcome]}`);
  }
}

/** Throws a Failure when there are findings. */
export function printAudit(terminal: Terminal, audit: LedgerAudit): void {
  const { accounts, rows, findings, closesWithoutRow, corrected, behind } = audit;
  if (terminal.format === 'json')
    terminal.printJson({ accounts, rows, findings, closes_without_row: closesWithoutRow, corrected, behind });
  else if (terminal.format === 'csv')
    terminal.printCsv([['finding'], ...findings.map((finding) => [finding])]);
  else findings.forEach(terminal.print);
  if (closesWithoutRow > 0)
    terminal.remark(
      `${closesWithoutRow} closes have no row of their own: guards of lost replies, which cost nothing`,
    );
  if (corrected > 0) terminal.remark(`${corrected} daily sums are corrected`);
  if (behind > 0)
    terminal.remark(
      `${behind} sums by month or model lack rows that older versions of the relay wrote: audit --rebuild-daily adds them`,
    );
  const audited = `${accounts} accounts and ${rows} ledger rows`;
  if (findings.length > 0) throw new Failure(`${findings.length} findings in ${audited}`);
  if (terminal.format === 'text') terminal.print(`${audited}: everything adds up.`);
}
