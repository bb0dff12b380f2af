/**
 * Compares every account's item with its grants, ledger rows and daily sums. Reads rows one after the other and
 * keeps sums alone, so that any number of them needs the same memory.
 */
import { auditAccount, closesWithoutRow, LedgerSums } from '../../billing/audit/account-audit.ts';
import {
  DailyAudit,
  splitBehind,
  type DailyDifference,
  monthDifferences,
  monthsOf,
  type Months,
} from '../../billing/audit/daily-audit.ts';
import { problemOf } from '../../billing/audit/recompute.ts';
import { accountId, dayOf, servedId } from '../../billing/daily-keys.ts';
import type { LedgerRow } from '../../billing/ledger-row.ts';
import { emptyQuota, imbalance } from '../../billing/quota-item.ts';
import { compareCodeUnits } from '../../wire/json.ts';
import { Failure } from '../plan.ts';
import type { OperatorPorts, Reading } from '../operator-ports.ts';
import { utcDay } from '../../wire/iso-time.ts';
import { noFigures, type DailySum } from '../../billing/daily-figures.ts';
import { formatYuan } from '../../billing/amount.ts';

interface AuditInput {
  /** Audit only this account. */
  account?: string | undefined;
  /** Audit only this account and those that sort after it: an audit that was interrupted goes on. */
  from?: string | undefined;
  /** How long to wait for ledger rows that are not written yet. */
  waitMs: number;
  /** Correct daily sums that are not those of the rows. */
  rebuildDaily?: boolean | undefined;
}

interface AuditProgress {
  /** Called with the number of further ledger rows that were read. */
  rowsRead: (count: number) => void;
  /** Called before an account is audited: an audit that ends here can go on from there. */
  auditing: (account: string) => void;
  /** Called before a repeated audit of an account with findings. */
  waitingFor: (account: string) => void;
}

/** The audit of one account. */
interface Seen {
  /** Descriptions of mismatches. */
  findings: string[];
  rows: number;
  closesWithoutRow: number;
  /** How many daily sums were corrected. */
  corrected: number;
  /** How many sums by month and by model lack rows of older versions: a rebuild makes them. */
  behind: number;
}

export interface LedgerAudit extends Seen {
  accounts: number;
}

/** Rows of the stream come this late at most, so the sums of a day are final this long after its end. */
const finalAfterMs = 13 * 60 * 60_000;

export async function auditLedger(
  ports: OperatorPorts,
  input: AuditInput,
  progress: AuditProgress,
): Promise<LedgerAudit> {
  const { account: only, from = '', waitMs, rebuildDaily = false } = input;
  const startMs = ports.clock.now();
  const daysBefore = utcDay(startMs - finalAfterMs);
  const auditing = { daysBefore, rebuild: rebuildDaily };
  const accounts = only === undefined ? await knownAccounts(ports, from, progress) : [only];
  // The sums of channels and of what was served are those of all accounts' rows.
  const channels = only === undefined && from === '' ? dailyAudit(daysBefore, isOfAll) : undefined;
  const seen: Seen = { findings: [], rows: 0, closesWithoutRow: 0, corrected: 0, behind: 0 };
  for (const account of accounts) {
    progress.auditing(account);
    try {
      addSeen(
        seen,
        await auditUntil(ports, { account, untilMs: startMs + waitMs, auditing, channels }, progress),
      );
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      const exitCode = error instanceof Failure ? error.exitCode : 1;
      throw new Failure(`${why}; go on with --from '${account}'`, exitCode);
    }
  }
  for (const id of channels?.ids ?? [])
    addSeen(seen, await auditDaily(ports, auditing, { id, audit: channels }));
  return { accounts: accounts.length, ...seen };
}

const dailyAudit = (daysBefore: string, isWanted: (id: string) => boolean): DailyAudit =>
  new DailyAudit((key) => isWanted(key.id) && (dayOf(key) ?? daysBefore) < daysBefore);

const isOfAll = (id: string): boolean => id.startsWith('channel#') || id === servedId;

function addSeen(all: Seen, more: Partial<Seen> & DailyOutcome): void {
  all.findings.push(...more.findings);
  all.rows += more.rows ?? 0;
  all.closesWithoutRow += more.closesWithoutRow ?? 0;
  all.corrected += more.corrected;
  all.behind += more.behind;
}

/** Every account that has an item, a grant or a ledger row, sorted. */
async function knownAccounts(
  { ledger }: OperatorPorts,
  from: string,
  { rowsRead }: AuditProgress,
): Promise<string[]> {
  const accounts = new Set<string>();
  for await (const page of ledger.accounts()) for (const account of page) accounts.add(account);
  for await (const page of ledger.grants()) for (const { account } of page) accounts.add(account);
  for await (const page of ledger.ledgerAccounts()) {
    for (const account of page) accounts.add(account);
    rowsRead(page.length);
  }
  return [...accounts].filter((account) => account >= from).toSorted(compareCodeUnits);
}

const pauseMs = 2000;

interface AccountTask {
  account: string;
  untilMs: number;
  auditing: DailyAuditing;
  /** Takes the rows of the account, once. */
  channels: DailyAudit | undefined;
}

/**
 * Repeats an audit with findings until the time is over, because ledger rows are written seconds after the
 * close.
 */
async function auditUntil(ports: OperatorPorts, task: AccountTask, progress: AuditProgress): Promise<Seen> {
  for (let channels = task.channels; ; channels = undefined) {
    const seen = await auditOnce(ports, { ...task, channels }, progress);
    if (seen.findings.length === 0 || ports.clock.now() + pauseMs > task.untilMs) return seen;
    progress.waitingFor(task.account);
    await ports.clock.sleep(pauseMs);
  }
}

async function auditOnce(
  ports: OperatorPorts,
  { account, auditing, channels }: AccountTask,
  { rowsRead }: AuditProgress,
): Promise<Seen> {
  const { ledger, clock } = ports;
  const readMs = clock.now();
  const reading = await ledger.quota(account);
  const item = reading && 'row' in reading ? reading.row : emptyQuota(account);
  const findings = reading && 'problem' in reading ? [`${account}: ${reading.problem}`] : [];
  const id = accountId(account);
  // Before the rows: what is counted after this is found as a change when it is corrected.
  const items = await readDaily(ports, id);
  const sums = new LedgerSums(item, readMs);
  const audit = dailyAudit(auditing.daysBefore, (of) => of === id);
  for await (const page of ledger.ledger({ account })) {
    for (const each of page) {
      if ('problem' in each) findings.push(`${each.key}: ${each.problem}`);
      else {
        sums.add(each.row);
        audit.add(each.row);
        channels?.add(each.row);
        findings.push(...rowFinding(each.row));
      }
    }
    rowsRead(page.length);
  }
  const grants = (await Array.fromAsync(ledger.grants(account))).flat();
  const records = { account, item, readMs, ledger: sums, grants };
  // Nothing can be compared with an item that cannot be read.
  if (!(reading && 'problem' in reading)) findings.push(...auditAccount(records));
  const daily = await auditDaily(ports, auditing, { id, audit, items });
  const months = await auditMonths(ports, { account, days: items, rebuild: auditing.rebuild });
  return {
    findings: [...findings, ...daily.findings, ...months.findings],
    rows: sums.rows,
    closesWithoutRow: closesWithoutRow(records),
    corrected: daily.corrected + months.corrected,
    behind: daily.behind + months.behind,
  };
}

function rowFinding(row: LedgerRow): string[] {
  const problem = problemOf(row);
  return problem === undefined ? [] : [`${row.account}: ledger row ${row.id}: ${problem}`];
}

// Compares the sums of an account's months with those of its days, and corrects them if asked to.

interface MonthTask {
  account: string;
  /** The account's items of days, as they were read before. */
  days: readonly Reading<DailySum>[];
  rebuild: boolean;
}

/** A correction that meets another write is made again at most so often. */
const triesMax = 5;

/**
 * The running month is compared too: what adds to a day adds to its month in the same transaction, so a month that
 * did not change while the days were read is of the same moment as they are.
 */
async function auditMonths(ports: OperatorPorts, task: MonthTask): Promise<DailyOutcome> {
  const outcome: DailyOutcome = { findings: [], corrected: 0, behind: 0 };
  const days = task.rebuild ? await readDaily(ports, accountId(task.account)) : task.days;
  // What cannot be read is a finding of the days.
  if (days.some((each) => 'problem' in each)) return outcome;
  const months = monthsOf(task.account, rowsOf(days));
  const first = await readMonths(ports, task.account, months);
  if (first.problems.length > 0) return { ...outcome, findings: first.problems };
  if (!task.rebuild && monthDifferences(task.account, months, first.found).length === 0) return outcome;
  const { corrected, left } = task.rebuild
    ? await rebuildMonths(ports, task.account, months)
    : { corrected: 0, left: await settledDifferences(ports, task.account, months) };
  return { ...outcome, corrected, ...splitBehind(left) };
}

async function rebuildMonths(
  ports: OperatorPorts,
  account: string,
  known: Months,
): Promise<{ corrected: number; left: DailyDifference[] }> {
  let corrected = 0;
  for (let tries = 1; ; tries += 1) {
    const left: DailyDifference[] = [];
    for (const difference of await differencesNow(ports, account, known))
      if (await ports.ledger.addToDaily(difference)) corrected += 1;
      else left.push(difference);
    if (left.length === 0 || tries === triesMax) return { corrected, left };
  }
}

/** Those of months that did not change while the days were read. */
async function settledDifferences(
  ports: OperatorPorts,
  account: string,
  known: Months,
): Promise<DailyDifference[]> {
  const differences = await differencesNow(ports, account, known);
  if (differences.length === 0) return [];
  const { found: after } = await readMonths(ports, account, known);
  return differences.filter(({ key, found }) => {
    const month = key.id.slice(-7);
    const same = monthDifferences(
      account,
      new Map([[month, after.get(month) ?? noFigures]]),
      new Map([[month, found]]),
    );
    return same.length === 0;
  });
}

/** The months are read before the days: a correction is made if its month is still as it was then. */
async function differencesNow(
  ports: OperatorPorts,
  account: string,
  known: Months,
): Promise<DailyDifference[]> {
  const { found } = await readMonths(ports, account, known);
  const days = await readDaily(ports, accountId(account));
  const wanted = monthsOf(account, rowsOf(days));
  // A month that began meanwhile was not read.
  return monthDifferences(account, wanted, found).filter(({ key }) => known.has(key.id.slice(-7)));
}

async function readMonths({ ledger }: OperatorPorts, account: string, months: Months) {
  const items = await ledger.accountMonths([...months.keys()].map((month) => ({ account, month })));
  return {
    found: new Map(rowsOf(items).map(({ month, figures }) => [month, figures])),
    problems: items.flatMap((each) => ('problem' in each ? [`${each.key}: ${each.problem}`] : [])),
  };
}

const rowsOf = <Row>(readings: readonly Reading<Row>[]): Row[] =>
  readings.flatMap((each) => ('row' in each ? [each.row] : []));

// Compares the daily sums of one account, of one channel or of what was served with those of the ledger rows, and corrects them if asked to.

interface DailyAuditing {
  /** Only days before this one are final. */
  daysBefore: string;
  rebuild: boolean;
}

interface DailyOutcome {
  findings: string[];
  corrected: number;
  /** Sums by month and by model that lack rows of older versions: a rebuild makes them. */
  behind: number;
}

/** `items`: what was read before the rows were; absent: it is read now. */
interface DailyTask {
  id: string;
  audit: DailyAudit | undefined;
  items?: Reading<DailySum>[];
}

const readDaily = async ({ ledger }: OperatorPorts, id: string): Promise<Reading<DailySum>[]> =>
  (await Array.fromAsync(ledger.daily(id))).flat();

async function auditDaily(
  ports: OperatorPorts,
  { rebuild }: DailyAuditing,
  { id, audit, items: known }: DailyTask,
): Promise<DailyOutcome> {
  const items = known ?? (await readDaily(ports, id));
  const findings = items.flatMap((each) => ('problem' in each ? [`${each.key}: ${each.problem}`] : []));
  const sums = items.flatMap((each) => ('row' in each ? [each.row] : []));
  const left: DailyDifference[] = [];
  let corrected = 0;
  for (const difference of audit?.differences(id, sums) ?? []) {
    if (rebuild && (await ports.ledger.addToDaily(difference))) corrected += 1;
    else left.push(difference);
  }
  const { behind, findings: wrong } = splitBehind(left);
  return { findings: [...findings, ...wrong], corrected, behind };
}

// View: whether the balances of some customers add up by themselves. The quick part of an audit: it reads no ledger row.

export interface AuditedBalances {
  /** How many were looked at, in the order of the table `accounts`. */
  count: number;
  findings: { account: string; finding: string }[];
  /** Where the next ones begin. Undefined: these were the last. */
  next: string | undefined;
}

export async function auditBalances(
  { ledger, pages }: Pick<OperatorPorts, 'ledger' | 'pages'>,
  { after, limit }: { after?: string | undefined; limit: number },
): Promise<AuditedBalances> {
  const { rows, next } = await pages.rows({ table: 'accounts', after, limit });
  const names = rows.map(({ account }) => String(account));
  const balances = await ledger.quotas(names);
  return {
    count: names.length,
    findings: balances.flatMap((each) => {
      if ('problem' in each) return [{ account: each.key, finding: each.problem }];
      const { account, moved } = each.row;
      const difference = imbalance(each.row);
      if (difference !== undefined)
        return [
          { account, finding: `differs by ${formatYuan(difference)} yuan from what was granted and spent` },
        ];
      return moved === 0n
        ? []
        : [
            {
              account,
              finding: `${formatYuan(moved)} yuan are between its parts: an audit of the customer says why`,
            },
          ];
    }),
    next,
  };
}
