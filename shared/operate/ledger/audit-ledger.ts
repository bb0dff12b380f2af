/**
 * Compares every account's item with its grants, ledger rows and daily sums. Reads rows one after the other and
 * keeps sums alone, so that any number of them needs the same memory.
 */
import { auditAccount, closesWithoutRow } from '../../billing/audit/account-audit.ts';
import { DailyAudit } from '../../billing/audit/daily-audit.ts';
import { LedgerSums } from '../../billing/audit/ledger-sums.ts';
import { problemOf } from '../../billing/audit/recompute.ts';
import { accountId, dayOf } from '../../billing/daily/daily-keys.ts';
import { servedId } from '../../billing/daily/sum-keys.ts';
import type { LedgerRow } from '../../billing/ledger-row.ts';
import { emptyQuota } from '../../billing/quota-item.ts';
import { compareCodeUnits } from '../../wire/canonical-json.ts';
import { Failure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { auditDaily, readDaily, type DailyAuditing, type DailyOutcome } from './audit-daily.ts';
import { auditMonths } from './audit-months.ts';
import { utcDay } from '../../wire/iso-time.ts';

export interface AuditInput {
  /** Audit only this account. */
  account?: string | undefined;
  /** Audit only this account and those that sort after it: an audit that was interrupted goes on. */
  from?: string | undefined;
  /** How long to wait for ledger rows that are not written yet. */
  waitMs: number;
  /** Correct daily sums that are not those of the rows. */
  rebuildDaily?: boolean | undefined;
}

export interface AuditProgress {
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
