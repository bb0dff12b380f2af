/** The commands of `ledger` and `audit`: what was charged, call by call, and whether it adds up. */
import { InvalidArgumentError } from 'commander';
import { firstCounts, laterCounts } from '../../../../shared/wire/chat-response.ts';
import { formatYuan } from '../../../../shared/billing/price.ts';
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
import { formatCount, Failure } from '../../../../shared/operate/plan.ts';
import { cacheWords } from '../../../../shared/operate/requests/find-request.ts';
import { marginOf } from '../../../../shared/operate/report.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import {
  approve,
  auditing,
  shows,
  type ApproveOptions,
  type CommandGroup,
  type CommandRun,
} from '../command.ts';
import { attributing, parseCount, parseList, parseNumber, parsePast, type Moment } from '../option-values.ts';
import { columnsIn, type Column } from '../terminal.ts';
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
  '--account <name>': 'only this account',
  '--from <time>': ['from then on', parsePast],
  '--to <time>': ['until then', parsePast],
  '--model <name>': 'only this model',
  ...attributing,
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
    if (!isGrouping(name)) throw new InvalidArgumentError(`Wanted ${wantedGroupings}.`);
    return name;
  });
}

export const ledgerCommands: CommandGroup = {
  name: 'ledger',
  does: 'what was charged, call by call',
  notes: `
Times are of UTC, such as 7d, yesterday or 2026-11-01, which means its first moment. --from is included, --to is not. A row's time is the
moment at which its call began; a grant's, at which it was booked.`,
  commands: [
    shows('list', {
      does: 'list the newest rows; with --csv all of them, as they are read',
      lists: true,
      takes: { ...selecting, '--limit <n>': ['rows at most', parseCount, 50] },
      examples: [
        'ledger list --account acme --limit 20',
        'ledger list --account acme --from 2026-11-01 --to 2026-12-01 --csv > november.csv',
      ],
      policies: auditing,
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
        terminal.printList(rows, { columns: ledgerColumns, json: formatLedgerRow, empty: 'no ledger rows' });
        if (count > rows.length)
          terminal.remark(`the newest ${rows.length} of ${count}: see --limit, --from, --csv`);
      },
    }),
    shows('total', {
      does: 'add rows up',
      lists: true,
      takes: {
        ...selecting,
        '--by <a,b>': [
          'account, model, day, end_user, tag:NAME, or several of them',
          parseGroupings,
          ['account'],
        ],
      },
      examples: [
        'ledger total --by account --from 2026-11-01 --to 2026-12-01',
        'ledger total --account acme --by model,day --csv',
        'ledger total --account acme --by tag:team --from 2026-11-01',
      ],
      policies: auditing,
      async run({ ports, terminal }, { by, ...options }: SelectOptions & { by: Grouping[] }) {
        const { totals, all, problems } = await sumRows(selectRows(ports, filterOf(ports, options)), (row) =>
          by.map((grouping) => groupIn(row, grouping)),
        );
        problems.forEach(terminal.remark);
        const columns: Column<Total>[] = [
          ...by.map((name, at): Column<Total> => [name, name.toUpperCase(), ({ groups }) => groups[at]]),
          ...columnsIn(({ figures }: Total) => figures, sumColumns),
        ];
        terminal.printList(totals, { columns, empty: 'no ledger rows' });
        if (terminal.format !== 'text' || totals.length === 0) return;
        const { charged = 0n, granted = 0n, bought_charged: sold = 0n } = all.amounts;
        const calls = formatCount(all.counts.calls ?? 0, 'call');
        terminal.print(`all: ${calls}, ${formatYuan(charged)} yuan charged, ${formatYuan(granted)} granted`);
        // A margin compares like with like: it is over the calls whose cost is known, and says how many these are.
        const { earned, knownCalls } = marginOf(all);
        terminal.print(
          earned === undefined
            ? 'margin: unknown, no call has a known cost'
            : `margin: ${formatYuan(earned)} yuan over the ${knownCalls} of ${calls} whose cost is known, ` +
                `which were charged ${formatYuan(sold)}`,
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

export const auditCommand = shows('audit', {
  does: 'add all accounts up again; exit code 1 when something does not fit',
  lists: true,
  takes: {
    '--account <name>': 'only this account',
    '--from <name>': 'only this account and those that sort after it, to go on where an audit ended',
    '--rebuild-daily': 'correct daily sums of past days that are not those of the ledger rows',
    '--repair <file>':
      'first write the closes of settle_lost and settle_late log lines; - reads standard input',
    '--wait <seconds>': ['how long to wait for ledger rows that are on their way', parseNumber, 15],
    '--dry-run': 'show what --repair and --rebuild-daily would do and write nothing',
    '--yes': 'do not ask before --repair writes',
  },
  examples: ['audit', 'audit --account acme', 'audit --repair lost.log --dry-run'],
  policies: auditing,
  optionPolicies: { '--repair': ['repair'], '--rebuild-daily': ['repair', 'restore'] },
  async run({ ports, terminal }, options: AuditOptions) {
    const { account, from, rebuildDaily = false, repair, wait, dryRun = false } = options;
    const unrepaired = repair === undefined ? [] : await repairAndPrint({ ports, terminal }, repair, options);
    const audit = await auditLedger(
      ports,
      { account, from, rebuildDaily: rebuildDaily && !dryRun, waitMs: wait * 1000 },
      {
        auditing: (name) => terminal.count(`auditing ${name} (to go on later: --from '${name}')`),
        waitingFor: (each) => terminal.remark(`${each}: waiting for ledger rows that may be on their way`),
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
        `${formatCount(closesWithoutRow, 'close has', 'closes have')} no row of their own: guards of lost replies, which cost nothing`,
      );
    if (corrected > 0)
      terminal.remark(`${formatCount(corrected, 'daily sum is', 'daily sums are')} corrected`);
    const audited = `${formatCount(accounts, 'account')} and ${formatCount(rows, 'ledger row')}`;
    if (findings.length > 0) throw new Failure(`${formatCount(findings.length, 'finding')} in ${audited}`);
    if (terminal.format === 'text') terminal.print(`${audited}: everything adds up.`);
    if (account !== undefined && rows === 0 && (await ports.ledger.quota(account)) === undefined)
      terminal.remark(`account ${account} never had a balance: is this its name? See \`customer list\``);
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
    const charge = `${formatYuan(each.charge)} yuan`;
    const words = {
      closed: `is closed now, charged ${charge}`,
      'charged late': `had expired, charged ${charge} more`,
      'closed before': 'was closed already, as it should be',
    };
    terminal.remark(`${each.account}: request ${each.id} ${words[each.outcome]}`);
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
  ['', 'TOKENS', (row) => tokensText(row)],
  ['', 'YUAN', (row) => yuanText(row)],
  ['', 'NOTE', (row) => noteText(row)],
];

function tokensText(row: LedgerRow): string {
  if (row.kind === 'grant' || row.prompt_tokens === undefined) return '-';
  return `${row.prompt_tokens}+${row.completion_tokens ?? 0}`;
}

const yuanText = (row: LedgerRow): string =>
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
const amount = (name: keyof DailyFigures['amounts'], called: string = name) =>
  sumColumn(called, ({ amounts }) => formatYuan(amounts[name] ?? 0n));

const sumColumns: Column<DailyFigures>[] = [
  ...(['calls', 'prompt_tokens', 'completion_tokens'] as const).map(count),
  amount('charged'),
  amount('official_cost', 'official'),
  amount('granted'),
  ...firstCounts.map(count),
  amount('bought'),
  count('bought_calls'),
  amount('bought_charged'),
  sumColumn('margin', (sum) => {
    const { earned } = marginOf(sum);
    return earned === undefined ? '' : formatYuan(earned);
  }),
  ...laterCounts.map(count),
  count('searches'),
  amount('searched'),
  amount('search_bought'),
];
