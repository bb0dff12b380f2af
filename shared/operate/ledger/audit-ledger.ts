/**
 * Compares every account's item with its grants, ledger rows and daily sums. Reads rows one after the other and
 * keeps sums alone, so that any number of them needs the same memory.
 */
import { auditAccount, countClosesWithoutRow, LedgerSums } from '../../billing/audit/account-audit.ts';
import {
  DailyAudit,
  formatDifference,
  compareMonths,
  sumMonths,
  type DailyDifference,
  type Months,
} from '../../billing/audit/daily-audit.ts';
import { explainChargeAboveReserve, findRowProblem } from '../../billing/audit/recompute.ts';
import type { DailySum } from '../../billing/daily-figures.ts';
import { formatAccountId, dayOf, isOfAllAccounts, parseMonthKey } from '../../billing/daily-keys.ts';
import { createQuotaItem, findImbalance } from '../../billing/quota-item.ts';
import { compareCodeUnits } from '../../wire/json.ts';
import { utcDay } from '../../wire/iso-time.ts';
import type { OperatorPorts, Reading } from '../operator-ports.ts';
import { Failure, formatMoney } from '../plan.ts';
import { readingsOf } from './ledger.ts';

interface AuditInput {
  account?: string | undefined;
  /** Audit only this account and those that sort after it: an audit that was interrupted goes on. */
  from?: string | undefined;
  /** How long to wait for ledger rows that are not written yet. */
  waitMs: number;
  /** Correct daily sums that are not those of the rows. */
  rebuildDaily?: boolean | undefined;
  /** No call runs and no row is on its way: the sums of all days are final. */
  isQuiet?: boolean | undefined;
}

interface AuditProgress {
  /** Called before an account is audited: an audit that ends here can go on from there. */
  auditing?: (account: string) => void;
  /** Called before a repeated audit of an account with findings. */
  waitingFor?: (account: string) => void;
}

/** `findings` describe mismatches; `corrected`: so many daily sums were. */
type Outcome = Awaited<ReturnType<typeof auditDaily>>;

interface Auditing {
  ports: OperatorPorts;
  /** Only days before this one are final. */
  daysBefore: string;
  rebuild: boolean;
}

/** Rows of the stream come this late at most, so the sums of a day are final this long after its end. */
const finalAfterMs = 13 * 60 * 60_000;
const afterAllDays = '9';
const pauseMs = 2000;

export async function auditLedger(
  ports: OperatorPorts,
  { account: only, from = '', waitMs, rebuildDaily: rebuild = false, isQuiet = false }: AuditInput,
  progress: AuditProgress = {},
) {
  const { clock } = ports;
  const startMs = clock.now();
  const auditing = {
    ports,
    daysBefore: isQuiet ? afterAllDays : utcDay(startMs - finalAfterMs),
    rebuild,
  };
  const accounts = only === undefined ? await listKnownAccounts(ports, from) : [only];
  const channels =
    only === undefined && from === '' ? createDailyAudit(auditing, isOfAllAccounts) : undefined;
  const audited: Awaited<ReturnType<typeof auditAccountOnce>>[] = [];
  for (const account of accounts) {
    progress.auditing?.(account);
    try {
      let seen = await auditAccountOnce(auditing, account, channels);
      // Ledger rows are written seconds after the close.
      while (seen.findings.length > 0 && clock.now() + pauseMs <= startMs + waitMs) {
        progress.waitingFor?.(account);
        await clock.sleep(pauseMs);
        const again = await auditAccountOnce(auditing, account);
        seen = { ...again, corrected: seen.corrected + again.corrected };
      }
      audited.push(seen);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      const exitCode = error instanceof Failure ? error.exitCode : 1;
      throw new Failure(`${why}; resume with --from '${account}'`, exitCode);
    }
  }
  const outcomes: Outcome[] = [...audited];
  for (const id of channels?.ids ?? [])
    outcomes.push(await auditDaily(auditing, { id, audit: channels, items: await readDaily(ports, id) }));
  return {
    accounts: accounts.length,
    findings: outcomes.flatMap(({ findings }) => findings),
    /** Charges above their hold that follow from their rows, each with its cause: no mismatches. */
    aboveHold: audited.flatMap(({ aboveHold }) => aboveHold),
    rows: audited.reduce((sum, { rows }) => sum + rows, 0),
    closesWithoutRow: audited.reduce((sum, each) => sum + each.closesWithoutRow, 0),
    corrected: outcomes.reduce((sum, { corrected }) => sum + corrected, 0),
  };
}

const createDailyAudit = ({ daysBefore }: Auditing, isWanted: (id: string) => boolean): DailyAudit =>
  new DailyAudit((key) => isWanted(key.id) && (dayOf(key) ?? daysBefore) < daysBefore);

/** Every account that has an item, a grant or a ledger row, sorted. */
export async function listKnownAccounts({ ledger }: OperatorPorts, from = ''): Promise<string[]> {
  const accounts = new Set<string>();
  for await (const page of ledger.accounts()) for (const account of page) accounts.add(account);
  for await (const page of ledger.grants()) for (const { account } of page) accounts.add(account);
  for await (const page of ledger.ledgerAccounts()) for (const account of page) accounts.add(account);
  return [...accounts].filter((account) => account >= from).toSorted(compareCodeUnits);
}

/** @param channels takes the rows of the account, once */
async function auditAccountOnce(auditing: Auditing, account: string, channels?: DailyAudit) {
  const { ports } = auditing;
  const { ledger, clock } = ports;
  const readMs = clock.now();
  const reading = await ledger.quota(account);
  const item = reading && 'row' in reading ? reading.row : createQuotaItem(account);
  const findings = reading && 'problem' in reading ? [`${account}: ${reading.problem}`] : [];
  const id = formatAccountId(account);
  // Before the rows: what is counted after this is found as a change when it is corrected.
  const items = await readDaily(ports, id);
  const aboveHold: string[] = [];
  const sums = new LedgerSums(item, readMs);
  const audit = createDailyAudit(auditing, (of) => of === id);
  for await (const page of ledger.ledger({ account })) {
    const { rows, problems } = readingsOf(page);
    findings.push(...problems);
    for (const row of rows) {
      sums.add(row);
      audit.add(row);
      channels?.add(row);
      const named = `${row.account}: ledger row ${row.id}`;
      const problem = findRowProblem(row);
      if (problem !== undefined) findings.push(`${named}: ${problem}`);
      const cause =
        row.kind === 'grant' || problem !== undefined ? undefined : explainChargeAboveReserve(row);
      if (cause !== undefined) aboveHold.push(`${named}: charged more than reserved: ${cause}`);
    }
  }
  const grants = (await Array.fromAsync(ledger.grants(account))).flat();
  const records = { account, item, readMs, ledger: sums, grants };
  // An unreadable item cannot be compared with its records.
  if (!(reading && 'problem' in reading)) findings.push(...auditAccount(records));
  const daily = await auditDaily(auditing, { id, audit, items });
  const months = await auditMonths(auditing, account, items);
  return {
    findings: [...findings, ...daily.findings, ...months.findings],
    aboveHold,
    rows: sums.rows,
    closesWithoutRow: countClosesWithoutRow(records),
    corrected: daily.corrected + months.corrected,
  };
}

const readDaily = async ({ ledger }: OperatorPorts, id: string): Promise<Reading<DailySum>[]> =>
  (await Array.fromAsync(ledger.daily(id))).flat();

/**
 * Compares the daily sums of one account, of one channel or of what was served with those of the ledger rows.
 * @param items as they were read before the rows
 */
async function auditDaily(
  { ports, rebuild }: Auditing,
  { id, audit, items }: { id: string; audit: DailyAudit | undefined; items: Reading<DailySum>[] },
) {
  const { rows: sums, problems } = readingsOf(items);
  const differences = audit?.compare(id, sums) ?? [];
  const left = rebuild ? await correct(ports, differences) : differences;
  const corrected = differences.length - left.length;
  return { findings: [...problems, ...left.map(formatDifference)], corrected };
}

/** @returns those that were not corrected, because their sums changed meanwhile */
async function correct(
  { ledger }: OperatorPorts,
  differences: readonly DailyDifference[],
): Promise<DailyDifference[]> {
  const left: DailyDifference[] = [];
  for (const difference of differences) if (!(await ledger.addToDaily(difference))) left.push(difference);
  return left;
}

/** A correction that meets another write is made again at most so often. */
const triesMax = 5;

/**
 * Compares the sums of an account's months with those of its days. The running month is compared too: what adds to a day adds
 * to its month in the same transaction, so a month that did not change while the days were read is of the same moment as they
 * are.
 * @param days as they were read before
 */
async function auditMonths(
  { ports, rebuild }: Auditing,
  account: string,
  days: readonly Reading<DailySum>[],
): Promise<Outcome> {
  const { rows, problems } = readingsOf(days);
  // Unreadable rows are reported with the days.
  if (problems.length > 0) return { findings: [], corrected: 0 };
  const known = sumMonths(account, rows);
  const first = await readMonths(ports, account, known);
  if (first.problems.length > 0) return { findings: first.problems, corrected: 0 };
  if (!rebuild) {
    if (compareMonths(account, known, first.found).length === 0) return { findings: [], corrected: 0 };
    const before = (await compareWithLedger(ports, account, known)).map(formatDifference);
    const after = new Set((await compareWithLedger(ports, account, known)).map(formatDifference));
    return { findings: before.filter((words) => after.has(words)), corrected: 0 };
  }
  let corrected = 0;
  let left: DailyDifference[] = [];
  for (let tries = 0; tries < triesMax; tries += 1) {
    const differences = await compareWithLedger(ports, account, known);
    left = await correct(ports, differences);
    corrected += differences.length - left.length;
    if (left.length === 0) break;
  }
  return { findings: left.map(formatDifference), corrected };
}

/** The months are read before the days: a correction is made if its month is still as it was then. */
async function compareWithLedger(
  ports: OperatorPorts,
  account: string,
  known: Months,
): Promise<DailyDifference[]> {
  const { found } = await readMonths(ports, account, known);
  const wanted = sumMonths(account, readingsOf(await readDaily(ports, formatAccountId(account))).rows);
  // A month that began meanwhile was not read.
  return compareMonths(account, wanted, found).filter(({ key }) => known.has(parseMonthKey(key).month));
}

async function readMonths({ ledger }: OperatorPorts, account: string, months: Months) {
  const wanted = [...months.keys()].map((month) => ({ account, month }));
  const { rows, problems } = readingsOf(await ledger.accountMonths(wanted));
  return { found: new Map(rows.map((row) => [row.month, row])), problems };
}

/** `count`: how many were looked at, in the order of the table `accounts`; `next`: where the next ones begin. */
export type AuditedBalances = Awaited<ReturnType<typeof auditBalances>>;

/** View: whether the balances of some customers add up by themselves. The quick part of an audit: it reads no ledger row. */
export async function auditBalances(
  { ledger, pages }: OperatorPorts,
  { after, limit }: { after?: string | undefined; limit: number },
) {
  const { rows, next } = await pages.rows({ table: 'accounts', after, limit });
  const balances = await ledger.quotas(rows.map(({ account }) => String(account)));
  const findings = balances.flatMap((each) => {
    if ('problem' in each) return [{ account: each.key, finding: each.problem }];
    const { account, moved } = each.row;
    const difference = findImbalance(each.row);
    if (difference !== undefined) {
      const finding = `differs by ${formatMoney(difference)} from what was granted and spent`;
      return [{ account, finding }];
    }
    const finding = `${formatMoney(moved)} is missing between its shards: audit the customer for details`;
    return moved === 0n ? [] : [{ account, finding }];
  });
  return { count: rows.length, findings, next };
}
