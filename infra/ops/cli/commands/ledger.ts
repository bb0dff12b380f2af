/** The commands of `ledger`, and `audit`: what was charged, and whether it adds up. */
import { InvalidArgumentError, type Command } from 'commander';
import type { DailyFigures } from '../../../../shared/billing/daily-figures.ts';
import { auditLedger, type LedgerAudit } from '../../../../shared/operate/ledger/audit-ledger.ts';
import {
  listLedger,
  selectRows,
  type LedgerFilter,
  groupings,
  totalLedger,
  type Grouping,
  ledgerJson,
  type LedgerList,
  type LedgerPage,
  type LedgerTotals,
} from '../../../../shared/operate/ledger/ledger.ts';
import {
  carryOutRepairLosses,
  planRepairLosses,
  type LossOutcome,
} from '../../../../shared/operate/ledger/repair-losses.ts';
import {
  type CommandContext,
  type Run,
  listing,
  approve,
  type ApproveOptions,
  countProgress,
  nameProgress,
} from '../command.ts';
import { parseList, parseCount, parseNumber, parseTime } from '../option-values.ts';
import { readTextFile } from '../text-files.ts';
import { formatYuan } from '../../../../shared/billing/amount.ts';
import { type LedgerRow, ledgerTimeMs } from '../../../../shared/billing/ledger-row.ts';
import { cacheWords } from '../../../../shared/operate/requests/find-request.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import { Failure } from '../../../../shared/operate/plan.ts';
import { csvRows, type Terminal } from '../terminal.ts';

const notes = `
Times are ISO 8601; a date means its first moment, UTC. --from is included, --to is not. A row's time is the
moment at which its call began; a grant's, at which it was booked.`;

interface SelectOptions {
  account?: string;
  /** Epoch milliseconds. */
  from?: number;
  to?: number;
  model?: string;
}

interface AuditOptions extends ApproveOptions {
  account?: string;
  repair?: string;
  from?: string;
  rebuildDaily?: boolean;
  /** Seconds. */
  wait: number;
}

export function addLedgerCommands(program: Command, context: CommandContext): void {
  const { onTables } = context;
  const ledger = program
    .command('ledger')
    .description('what was charged, call by call')
    .addHelpText('after', notes);

  selecting(
    ledger.command('list').description('list the newest rows; with --csv all of them, as they are read'),
  )
    .option('--limit <n>', 'rows at most', parseCount, 50)
    .action(
      onTables(async ({ ports, terminal }, { limit, ...options }: SelectOptions & { limit: number }) => {
        const onProgress = countProgress(terminal, 'ledger rows read');
        if (terminal.format === 'csv')
          return printLedgerCsv(terminal, selectRows(ports, filterOf(options), onProgress));
        return printLedger(terminal, await listLedger(ports, { ...filterOf(options), limit }, onProgress));
      }),
    );

  selecting(ledger.command('total').description('add rows up'))
    .option('--by <a,b>', 'account, model, day, or several of them', parseGroupings, ['account'])
    .action(
      onTables(async ({ ports, terminal }, { by, ...options }: SelectOptions & { by: Grouping[] }) => {
        const onProgress = countProgress(terminal, 'ledger rows read');
        printTotals(terminal, await totalLedger(ports, { ...filterOf(options), by }, onProgress));
      }),
    );

  addAudit(program, context);
}

function addAudit(program: Command, { onTables }: CommandContext): void {
  listing(program.command('audit'))
    .description('add all accounts up again; exit code 1 when something does not fit')
    .option('--account <name>', 'only this account')
    .option('--from <name>', 'only this account and those that sort after it, to go on where an audit ended')
    .option('--rebuild-daily', 'correct daily sums of past days that are not those of the ledger rows')
    .option(
      '--repair <file>',
      'first write the closes of settle_lost and settle_late log lines; - reads standard input',
    )
    .option('--wait <seconds>', 'how long to wait for ledger rows that are on their way', parseNumber, 15)
    .option('--dry-run', 'show what --repair and --rebuild-daily would do and write nothing')
    .option('--yes', 'do not ask before --repair writes')
    .action(onTables(auditAndPrint));
}

async function auditAndPrint({ ports, terminal }: Run, options: AuditOptions): Promise<void> {
  const { account, from, rebuildDaily = false, repair, wait, dryRun = false } = options;
  const unrepaired = repair === undefined ? [] : await repairAndPrint({ ports, terminal }, repair, options);
  const audit = await auditLedger(
    ports,
    { account, from, rebuildDaily: rebuildDaily && !dryRun, waitMs: wait * 1000 },
    {
      rowsRead: countProgress(terminal, 'ledger rows read'),
      auditing: nameProgress(terminal, 'auditing', 'to go on later: --from'),
      waitingFor: (each) => terminal.remark(`${each}: waiting for ledger rows that may be on their way`),
    },
  );
  printAudit(terminal, { ...audit, findings: [...unrepaired, ...audit.findings] });
}

/** @returns one sentence for each close that could not be written */
async function repairAndPrint(
  { ports, terminal }: Run,
  source: string,
  options: ApproveOptions,
): Promise<string[]> {
  const lines = source === '-' ? await terminal.readInput('Paste the log lines') : await readTextFile(source);
  const plan = await planRepairLosses(ports, lines);
  plan.effect.forEach(terminal.remark);
  if (!(await approve(terminal, plan, options))) return [];
  const outcomes = await carryOutRepairLosses(ports, plan);
  printRepaired(terminal, outcomes);
  return outcomes.flatMap((each) => (each.outcome === 'not closed' ? [each.finding] : []));
}

function parseGroupings(written: string): Grouping[] {
  return parseList(written).map((name) => {
    const grouping = groupings.find((each) => each === name);
    if (grouping === undefined) throw new InvalidArgumentError(`Wanted ${groupings.join(', ')}.`);
    return grouping;
  });
}

const selecting = (command: Command): Command =>
  listing(command)
    .option('--account <name>', 'only this account')
    .option('--from <time>', 'from then on', parseTime)
    .option('--to <time>', 'until then', parseTime)
    .option('--model <name>', 'only this model');

const filterOf = ({ account, from, to, model }: SelectOptions): LedgerFilter => ({
  account,
  fromMs: from,
  toMs: to,
  model,
});

// Prints the ledger and its audit.

function printLedger(terminal: Terminal, { rows, count, problems }: LedgerList): void {
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
async function printLedgerCsv(terminal: Terminal, pages: AsyncIterable<LedgerPage>): Promise<void> {
  terminal.printCsv([csvColumns]);
  for await (const { rows, problems } of pages) {
    problems.forEach(terminal.remark);
    const cells = rows.map(ledgerJson);
    terminal.printCsv(csvRows(csvColumns, cells).slice(1));
  }
}

function printTotals(terminal: Terminal, { by, totals, all, problems }: LedgerTotals): void {
  problems.forEach(terminal.remark);
  const head = [...by, ...sumColumns];
  const rows = totals.map(({ groups, figures }) => [...groups, ...sumCells(figures)]);
  terminal.printList({
    columns: head,
    rows: rows.map((row) => Object.fromEntries(head.map((name, at) => [name, row[at]]))),
    table: () => [head.map((name) => name.toUpperCase()), ...rows],
    empty: 'no ledger rows',
  });
  if (terminal.format !== 'text' || rows.length === 0) return;
  terminal.print(
    `all: ${all.counts.calls ?? 0} calls, ${formatYuan(all.amounts.charged ?? 0n)} yuan charged, ${formatYuan(all.amounts.granted ?? 0n)} granted`,
  );
  terminal.print(marginWords(all));
}

const sumColumns =
  'calls prompt_tokens completion_tokens charged official granted cached_tokens cache_write_tokens cache_write_1h_tokens bought bought_calls bought_charged margin'.split(
    ' ',
  );

const sumCells = ({ counts, amounts }: DailyFigures): string[] => {
  const { charged = 0n, official_cost = 0n, granted = 0n, bought = 0n, bought_charged = 0n } = amounts;
  const { bought_calls = 0 } = counts;
  return [
    ...[counts.calls, counts.prompt_tokens, counts.completion_tokens].map((count) => String(count ?? 0)),
    ...[charged, official_cost, granted].map(formatYuan),
    ...[counts.cached_tokens, counts.cache_write_tokens, counts.cache_write_1h_tokens].map((count) =>
      String(count ?? 0),
    ),
    formatYuan(bought),
    String(bought_calls),
    formatYuan(bought_charged),
    bought_calls > 0 ? formatYuan(bought_charged - bought) : '',
  ];
};

/** A margin compares like with like: it is over the calls whose cost is known, and says how many these are. */
function marginWords({ counts, amounts: { bought = 0n, bought_charged = 0n } }: DailyFigures): string {
  const { calls = 0, bought_calls = 0 } = counts;
  if (bought_calls === 0) return 'margin: unknown, no call has a known cost';
  return (
    `margin: ${formatYuan(bought_charged - bought)} yuan over the ${bought_calls} of ${calls} calls whose cost is known, ` +
    `which were charged ${formatYuan(bought_charged)}`
  );
}

/** Closes that could not be written are not printed: they are findings of the audit. */
function printRepaired(terminal: Terminal, outcomes: LossOutcome[]): void {
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
function printAudit(terminal: Terminal, audit: LedgerAudit): void {
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
