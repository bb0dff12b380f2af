/**
 * Compares every account's item with its grants, ledger rows and daily sums. Reads rows one after the other and
 * keeps sums alone, so that any number of them needs the same memory.
 */
import { formatYuan } from '../../billing/price.ts';
import { auditAccount, closesWithoutRow, LedgerSums } from '../../billing/audit/account-audit.ts';
import {
  DailyAudit,
  differenceWords,
  monthDifferences,
  monthsOf,
  type DailyDifference,
  type Months,
} from '../../billing/audit/daily-audit.ts';
import { problemOf } from '../../billing/audit/recompute.ts';
import { noFigures, type DailySum } from '../../billing/daily-figures.ts';
import { accountId, dayOf, servedId } from '../../billing/daily-keys.ts';
import { emptyQuota, imbalance } from '../../billing/quota-item.ts';
import { compareCodeUnits } from '../../wire/json.ts';
import { utcDay } from '../../wire/iso-time.ts';
import type { OperatorPorts, Reading } from '../operator-ports.ts';
import { Failure } from '../plan.ts';
import { readingsOf } from './ledger.ts';

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

/** What the audit of some sums came to. */
interface Outcome {
  /** Descriptions of mismatches. */
  findings: string[];
  /** How many daily sums were corrected. */
  corrected: number;
}

/** The audit of one account. */
interface AccountOutcome extends Outcome {
  rows: number;
  closesWithoutRow: number;
}

export interface LedgerAudit extends AccountOutcome {
  accounts: number;
}

/** What an audit does to sums of days. */
interface DailyAuditing {
  /** Only days before this one are final. */
  daysBefore: string;
  rebuild: boolean;
}

/** Rows of the stream come this late at most, so the sums of a day are final this long after its end. */
const finalAfterMs = 13 * 60 * 60_000;

export async function auditLedger(
  ports: OperatorPorts,
  { account: only, from = '', waitMs, rebuildDaily = false }: AuditInput,
  progress: AuditProgress,
): Promise<LedgerAudit> {
  const startMs = ports.clock.now();
  const auditing = { daysBefore: utcDay(startMs - finalAfterMs), rebuild: rebuildDaily };
  const accounts = only === undefined ? await knownAccounts(ports, from, progress) : [only];
  const channels = only === undefined && from === '' ? dailyAudit(auditing, isOfAll) : undefined;
  const all = { findings: [] as string[], rows: 0, closesWithoutRow: 0, corrected: 0 };
  const add = (more: Partial<AccountOutcome> & Outcome): void => {
    all.findings.push(...more.findings);
    all.rows += more.rows ?? 0;
    all.closesWithoutRow += more.closesWithoutRow ?? 0;
    all.corrected += more.corrected;
  };
  for (const account of accounts) {
    progress.auditing(account);
    try {
      const task = { account, untilMs: startMs + waitMs, auditing, channels };
      add(await auditUntil(ports, task, progress));
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      const exitCode = error instanceof Failure ? error.exitCode : 1;
      throw new Failure(`${why}; go on with --from '${account}'`, exitCode);
    }
  }
  for (const id of channels?.ids ?? [])
    add(await auditDaily(ports, auditing, { id, audit: channels, items: await readDaily(ports, id) }));
  return { accounts: accounts.length, ...all };
}

/** The sums of channels and of what was served are those of all accounts' rows. */
const isOfAll = (id: string): boolean => id.startsWith('channel#') || id === servedId;

const dailyAudit = ({ daysBefore }: DailyAuditing, isWanted: (id: string) => boolean): DailyAudit =>
  new DailyAudit((key) => isWanted(key.id) && (dayOf(key) ?? daysBefore) < daysBefore);

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

/** Repeats an audit with findings until the time is over, because ledger rows are written seconds after the close. */
async function auditUntil(
  ports: OperatorPorts,
  task: AccountTask,
  progress: AuditProgress,
): Promise<AccountOutcome> {
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
): Promise<AccountOutcome> {
  const { ledger, clock } = ports;
  const readMs = clock.now();
  const reading = await ledger.quota(account);
  const item = reading && 'row' in reading ? reading.row : emptyQuota(account);
  const findings = reading && 'problem' in reading ? [`${account}: ${reading.problem}`] : [];
  const id = accountId(account);
  // Before the rows: what is counted after this is found as a change when it is corrected.
  const items = await readDaily(ports, id);
  const sums = new LedgerSums(item, readMs);
  const audit = dailyAudit(auditing, (of) => of === id);
  for await (const page of ledger.ledger({ account })) {
    const { rows, problems } = readingsOf(page);
    findings.push(...problems);
    for (const row of rows) {
      sums.add(row);
      audit.add(row);
      channels?.add(row);
      const problem = problemOf(row);
      if (problem !== undefined) findings.push(`${row.account}: ledger row ${row.id}: ${problem}`);
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
  };
}

const readDaily = async ({ ledger }: OperatorPorts, id: string): Promise<Reading<DailySum>[]> =>
  (await Array.fromAsync(ledger.daily(id))).flat();

interface DailyTask {
  id: string;
  audit: DailyAudit | undefined;
  /** What was read before the rows were. */
  items: Reading<DailySum>[];
}

/** Compares the daily sums of one account, of one channel or of what was served with those of the ledger rows. */
async function auditDaily(
  ports: OperatorPorts,
  { rebuild }: DailyAuditing,
  { id, audit, items }: DailyTask,
): Promise<Outcome> {
  const { rows: sums, problems } = readingsOf(items);
  const differences = audit?.differences(id, sums) ?? [];
  const { corrected, left } = rebuild
    ? await correct(ports, differences)
    : { corrected: 0, left: differences };
  return { findings: [...problems, ...left.map(differenceWords)], corrected };
}

interface Corrected {
  corrected: number;
  /** Of sums that changed meanwhile. */
  left: DailyDifference[];
}

async function correct(
  { ledger }: OperatorPorts,
  differences: readonly DailyDifference[],
): Promise<Corrected> {
  const left: DailyDifference[] = [];
  for (const difference of differences) if (!(await ledger.addToDaily(difference))) left.push(difference);
  return { corrected: differences.length - left.length, left };
}

interface MonthTask {
  account: string;
  /** The account's items of days, as they were read before. */
  days: readonly Reading<DailySum>[];
  rebuild: boolean;
}

/**
 * Compares the sums of an account's months with those of its days. The running month is compared too: what adds to a day adds
 * to its month in the same transaction, so a month that did not change while the days were read is of the same moment as they
 * are.
 */
async function auditMonths(ports: OperatorPorts, { account, days, rebuild }: MonthTask): Promise<Outcome> {
  const { rows, problems: unread } = readingsOf(rebuild ? await readDaily(ports, accountId(account)) : days);
  // What cannot be read is a finding of the days.
  if (unread.length > 0) return { findings: [], corrected: 0 };
  const months = monthsOf(account, rows);
  const { found, problems } = await readMonths(ports, account, months);
  if (problems.length > 0) return { findings: problems, corrected: 0 };
  if (!rebuild && monthDifferences(account, months, found).length === 0)
    return { findings: [], corrected: 0 };
  const { corrected, left } = rebuild
    ? await rebuildMonths(ports, account, months)
    : { corrected: 0, left: await settledDifferences(ports, account, months) };
  return { findings: left.map(differenceWords), corrected };
}

/** A correction that meets another write is made again at most so often. */
const triesMax = 5;

async function rebuildMonths(ports: OperatorPorts, account: string, known: Months): Promise<Corrected> {
  let corrected = 0;
  for (let tries = 1; ; tries += 1) {
    const made = await correct(ports, await differencesNow(ports, account, known));
    corrected += made.corrected;
    if (made.left.length === 0 || tries === triesMax) return { corrected, left: made.left };
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
    const [is, was] = [new Map([[month, after.get(month) ?? noFigures]]), new Map([[month, found]])];
    return monthDifferences(account, is, was).length === 0;
  });
}

/** The months are read before the days: a correction is made if its month is still as it was then. */
async function differencesNow(
  ports: OperatorPorts,
  account: string,
  known: Months,
): Promise<DailyDifference[]> {
  const { found } = await readMonths(ports, account, known);
  const wanted = monthsOf(account, readingsOf(await readDaily(ports, accountId(account))).rows);
  // A month that began meanwhile was not read.
  return monthDifferences(account, wanted, found).filter(({ key }) => known.has(key.id.slice(-7)));
}

async function readMonths({ ledger }: OperatorPorts, account: string, months: Months) {
  const wanted = [...months.keys()].map((month) => ({ account, month }));
  const { rows, problems } = readingsOf(await ledger.accountMonths(wanted));
  return { found: new Map(rows.map(({ month, figures }) => [month, figures])), problems };
}

export interface AuditedBalances {
  /** How many were looked at, in the order of the table `accounts`. */
  count: number;
  findings: { account: string; finding: string }[];
  /** Where the next ones begin. Undefined: these were the last. */
  next: string | undefined;
}

/** View: whether the balances of some customers add up by themselves. The quick part of an audit: it reads no ledger row. */
export async function auditBalances(
  { ledger, pages }: OperatorPorts,
  { after, limit }: { after?: string | undefined; limit: number },
): Promise<AuditedBalances> {
  const { rows, next } = await pages.rows({ table: 'accounts', after, limit });
  const balances = await ledger.quotas(rows.map(({ account }) => String(account)));
  const findings = balances.flatMap((each) => {
    if ('problem' in each) return [{ account: each.key, finding: each.problem }];
    const { account, moved } = each.row;
    const difference = imbalance(each.row);
    if (difference !== undefined) {
      const finding = `differs by ${formatYuan(difference)} yuan from what was granted and spent`;
      return [{ account, finding }];
    }
    const finding = `${formatYuan(moved)} yuan are between its parts: an audit of the customer says why`;
    return moved === 0n ? [] : [{ account, finding }];
  });
  return { count: rows.length, findings, next };
}
