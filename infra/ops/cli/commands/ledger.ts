/** The commands of `ledger` and `audit`: what was charged, call by call, and whether it adds up. */
import { InvalidArgumentError } from 'commander';
import { firstCounts, laterCounts } from '../../../../shared/wire/chat-response.ts';
import { formatYuan } from '../../../../shared/billing/money.ts';
import type { DailyFigures } from '../../../../shared/billing/daily-figures.ts';
import { findLedgerTimeMs, type Attribution, type LedgerRow } from '../../../../shared/billing/ledger-row.ts';
import { auditLedger } from '../../../../shared/operate/ledger/audit-ledger.ts';
import {
  formatLedgerRow,
  listLedger,
  groupIn,
  isGrouping,
  selectRows,
  wantedGroupings,
  sumRows,
  type LedgerFilter,
  type Grouping,
} from '../../../../shared/operate/ledger/ledger.ts';
import { carryOutRepairLosses, planRepairLosses } from '../../../../shared/operate/ledger/repair-losses.ts';
import type { OperatorPorts } from '../../../../shared/operate/operator-ports.ts';
import { formatCount, Failure, formatMoney } from '../../../../shared/operate/plan.ts';
import { cacheWords } from '../../../../shared/operate/requests/find-request.ts';
import { marginOf } from '../../../../shared/operate/report.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import {
  approve,
  auditors,
  defineView,
  type ApproveOptions,
  type CommandGroup,
  type CommandRun,
} from '../command.ts';
import { callFilters, parseCount, parseList, parseNumber, parsePast, type Moment } from '../option-values.ts';
import { nestColumns, type Column } from '../terminal.ts';
import { readTextFile } from '../text-files.ts';

interface SelectOptions {
  account?: string;
  from?: Moment;
  to?: Moment;
  model?: string;
  endUser?: string;
  tag?: Attribution['tags'];
}

const selecting = {
  '--account <name>': 'only this customer',
  '--from <time>': ['start time, included', parsePast],
  '--to <time>': ['end time, not included', parsePast],
  '--model <name>': 'only this model',
  ...callFilters,
} as const;

const filterOf = (
  { clock }: OperatorPorts,
  { account, from, to, model, endUser, tag }: SelectOptions,
): LedgerFilter => ({
  account,
  fromMs: from?.(clock.now()),
  toMs: to?.(clock.now()),
  model,
  end_user: endUser,
  tags: tag,
});

function parseGroupings(written: string): Grouping[] {
  return parseList(written).map((name) => {
    if (!isGrouping(name)) throw new InvalidArgumentError(`Expected ${wantedGroupings}.`);
    return name;
  });
}

export const ledgerCommands: CommandGroup = {
  name: 'ledger',
  does: 'list and total charges, call by call',
  notes: `
Times are in UTC, such as 7d, yesterday or 2026-11-01 (midnight). A row has the start time of its call; a grant has the
time it was applied.`,
  commands: [
    defineView('list', {
      does: 'list the newest ledger rows; --csv prints all rows',
      lists: true,
      takes: { ...selecting, '--limit <n>': ['maximum number of rows', parseCount, 50] },
      examples: [
        'ledger list --account acme --limit 20',
        'ledger list --account acme --from 2026-11-01 --to 2026-12-01 --csv > november.csv',
      ],
      policies: auditors,
      async run({ ports, terminal }, { limit, ...options }: SelectOptions & { limit: number }) {
        if (terminal.format === 'csv') {
          terminal.printCsv(ledgerNames, []);
          // Each page when it is read, because all rows together may not fit into memory.
          for await (const page of selectRows(ports, filterOf(ports, options))) {
            page.problems.forEach(terminal.remark);
            terminal.printCsvRows(ledgerNames, page.rows.map(formatLedgerRow));
          }
          return;
        }
        const { rows, count, problems } = await listLedger(ports, { ...filterOf(ports, options), limit });
        problems.forEach(terminal.remark);
        terminal.printList(rows, { columns: ledgerColumns, json: formatLedgerRow, empty: 'No ledger rows.' });
        if (count > rows.length)
          terminal.remark(
            `Showing the newest ${rows.length} of ${count} rows: use --limit, --from or --csv for more`,
          );
      },
    }),
    defineView('total', {
      does: 'total the ledger',
      lists: true,
      takes: {
        ...selecting,
        '--by <a,b>': [
          'group by account, model, day, end_user or tag:NAME, or several of these',
          parseGroupings,
          ['account'],
        ],
      },
      examples: [
        'ledger total --by account --from 2026-11-01 --to 2026-12-01',
        'ledger total --account acme --by model,day --csv',
        'ledger total --account acme --by tag:team --from 2026-11-01',
      ],
      policies: auditors,
      async run({ ports, terminal }, { by, ...options }: SelectOptions & { by: Grouping[] }) {
        const { totals, all, problems } = await sumRows(selectRows(ports, filterOf(ports, options)), (row) =>
          by.map((grouping) => groupIn(row, grouping)),
        );
        problems.forEach(terminal.remark);
        const columns: Column<Total>[] = [
          ...by.map((name, at): Column<Total> => [name, name.toUpperCase(), ({ groups }) => groups[at]]),
          ...nestColumns(({ figures }: Total) => figures, sumColumns),
        ];
        terminal.printList(totals, { columns, empty: 'No ledger rows.' });
        if (terminal.format !== 'text' || totals.length === 0) return;
        const { charged = 0n, granted = 0n, bought_charged: sold = 0n } = all.amounts;
        const calls = formatCount(all.counts.calls ?? 0, 'call');
        terminal.print(`Total: ${calls}, ${formatMoney(charged)} charged, ${formatMoney(granted)} granted`);
        // A margin compares like with like: it is over the calls whose cost is known, and says how many these are.
        const { earned, knownCalls } = marginOf(all);
        terminal.print(
          earned === undefined
            ? 'Margin: unknown (no call has a known cost)'
            : `Margin: ${formatMoney(earned)} on ${formatMoney(sold)} charged for the ${knownCalls} of ${calls} with known cost`,
        );
      },
    }),
  ],
};

interface AuditOptions extends ApproveOptions {
  account?: string;
  repair?: string;
  from?: string;
  rebuildDaily?: boolean;
  /** Seconds. */
  wait: number;
}

export const auditCommand = defineView('audit', {
  does: 're-verify all balances; exits 1 on a mismatch',
  lists: true,
  takes: {
    '--account <name>': 'only this customer',
    '--from <name>': 'start at this customer, to resume an interrupted audit',
    '--rebuild-daily': 'correct daily totals of past days that differ from the ledger',
    '--repair <file>':
      'first settle the calls in these settle_lost and settle_late log lines; - reads standard input',
    '--wait <seconds>': ['how long to wait for pending ledger rows', parseNumber, 15],
    '--dry-run': 'show the effect of --repair and --rebuild-daily and write nothing',
    '--yes': 'skip confirmation of --repair',
  },
  examples: ['audit', 'audit --account acme', 'audit --repair lost.log --dry-run'],
  policies: auditors,
  optionPolicies: { '--repair': ['repair'], '--rebuild-daily': ['repair', 'restore'] },
  async run({ ports, terminal }, options: AuditOptions) {
    const { account, from, rebuildDaily = false, repair, wait, dryRun = false } = options;
    const unrepaired = repair === undefined ? [] : await repairAndPrint({ ports, terminal }, repair, options);
    const audit = await auditLedger(
      ports,
      { account, from, rebuildDaily: rebuildDaily && !dryRun, waitMs: wait * 1000 },
      {
        auditing: (name) => terminal.count(`auditing ${name} (resume with --from '${name}')`),
        waitingFor: (each) => terminal.remark(`${each}: waiting for pending ledger rows`),
      },
    );
    const { accounts, rows, aboveHold, closesWithoutRow, corrected } = audit;
    const findings = [...unrepaired, ...audit.findings];
    terminal.printAs(
      { accounts, rows, findings, above_hold: aboveHold, closes_without_row: closesWithoutRow, corrected },
      () => [...findings, ...aboveHold].forEach(terminal.print),
      [['finding'], findings.map((finding) => ({ finding }))],
    );
    if (closesWithoutRow > 0)
      terminal.remark(
        `${formatCount(closesWithoutRow, 'closed reservation has', 'closed reservations have')} no ledger row: such a close only blocks late writes after a lost reply, at no cost`,
      );
    if (corrected > 0) terminal.remark(`Corrected ${formatCount(corrected, 'daily total')}.`);
    const audited = `${formatCount(accounts, 'account')} and ${formatCount(rows, 'ledger row')}`;
    if (findings.length > 0)
      throw new Failure(`${formatCount(findings.length, 'mismatch', 'mismatches')} in ${audited}`);
    if (terminal.format === 'text') terminal.print(`Verified ${audited}: all balances match.`);
    if (account !== undefined && rows === 0 && (await ports.ledger.quota(account)) === undefined)
      terminal.remark(`customer ${account} never had a balance: check the name with \`customer list\``);
  },
});

/** @returns one sentence for each close that could not be written */
async function repairAndPrint(
  { ports, terminal }: CommandRun,
  source: string,
  options: ApproveOptions,
): Promise<string[]> {
  const lines = source === '-' ? await terminal.readInput('Paste the log lines') : await readTextFile(source);
  const plan = await planRepairLosses(ports, lines);
  plan.effect.forEach(terminal.remark);
  if (!(await approve(terminal, plan, options))) return [];
  const outcomes = await carryOutRepairLosses(ports, plan);
  for (const each of outcomes) {
    if (each.outcome === 'not closed') continue;
    const charge = formatMoney(each.charge);
    const words = {
      closed: `settled, ${charge} charged`,
      'charged late': `had expired, ${charge} more charged`,
      'closed before': 'was already settled correctly',
    };
    terminal.remark(`${each.account}: request ${each.id}: ${words[each.outcome]}`);
  }

  return outcomes.flatMap((each) => (each.outcome === 'not closed' ? [each.finding] : []));
}

/** Always all of them, so that files of different days have the same columns. */
const ledgerNames = [
  'began booked account id kind endpoint model key charge reserved prompt_tokens completion_tokens',
  'estimated end price plan_slot official cost amount reason',
  ...firstCounts,
  'channel upstream_model bought first_content_ms flag',
  ...laterCounts,
  'end_user tags service_tier search_price search_bought',
].flatMap((names) => names.split(' '));

const ledgerColumns: Column<LedgerRow>[] = [
  ['', 'BEGAN', (row) => isoTime(findLedgerTimeMs(row))],
  ['', 'ACCOUNT', ({ account }) => account],
  ['', 'ID', ({ id }) => id],
  ['', 'KIND', ({ kind }) => kind],
  ['', 'MODEL', (row) => (row.kind === 'grant' ? '-' : row.model)],
  ['', 'TOKENS', (row) => formatTokens(row)],
  ['', 'YUAN', (row) => formatCharge(row)],
  ['', 'NOTE', (row) => noteText(row)],
];

function formatTokens(row: LedgerRow): string {
  if (row.kind === 'grant' || row.prompt_tokens === undefined) return '-';
  return `${row.prompt_tokens}+${row.completion_tokens ?? 0}`;
}

const formatCharge = (row: LedgerRow): string =>
  row.kind === 'grant' ? `${row.amount > 0n ? '+' : ''}${formatYuan(row.amount)}` : formatYuan(row.charge);

function noteText(row: LedgerRow): string {
  if (row.kind === 'grant') return row.reason;
  const notes = [
    row.plan_slot === undefined ? '' : `plan ${row.plan_slot}`,
    row.official ? `official, would cost ${formatYuan(row.cost ?? 0n)}` : '',
    row.search_price === undefined ? '' : `search ${formatYuan(row.search_price)}`,
    cacheWords(row),
    row.estimated ? `estimated${row.flag === undefined ? '' : ` (${row.flag})`}` : '',
    row.end === 'completed' ? '' : (row.end ?? ''),
  ];
  return notes.filter((note) => note !== '').join(', ');
}

type Total = Awaited<ReturnType<typeof sumRows>>['totals'][number];

const sumColumn = (name: string, textOf: (sum: DailyFigures) => string): Column<DailyFigures> => [
  name,
  name.toUpperCase(),
  textOf,
];
const count = (name: keyof DailyFigures['counts']) =>
  sumColumn(name, ({ counts }) => String(counts[name] ?? 0));
const buildAmountColumn = (name: keyof DailyFigures['amounts'], called: string = name) =>
  sumColumn(called, ({ amounts }) => formatYuan(amounts[name] ?? 0n));

const sumColumns: Column<DailyFigures>[] = [
  ...(['calls', 'prompt_tokens', 'completion_tokens'] as const).map(count),
  buildAmountColumn('charged'),
  buildAmountColumn('official_cost', 'official'),
  buildAmountColumn('granted'),
  ...firstCounts.map(count),
  buildAmountColumn('bought'),
  count('bought_calls'),
  buildAmountColumn('bought_charged'),
  sumColumn('margin', (sum) => {
    const { earned } = marginOf(sum);
    return earned === undefined ? '' : formatYuan(earned);
  }),
  ...laterCounts.map(count),
  count('searches'),
  buildAmountColumn('searched'),
  buildAmountColumn('search_bought'),
];
