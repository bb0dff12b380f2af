/** View: compares every account's item with its grants and ledger rows. */
import { auditAccount, closesWithoutRow, type AccountRecords } from '../../billing/audit/account-audit.ts';
import { problemOf } from '../../billing/audit/recompute.ts';
import type { LedgerRow } from '../../billing/ledger-row.ts';
import { emptyQuota } from '../../billing/quota-item.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { readingsOf } from './select-rows.ts';

export interface AuditInput {
  /** Audit only this account. */
  account?: string | undefined;
  /** How long to wait for ledger rows that are not written yet. */
  waitMs: number;
}

export interface AuditProgress {
  /** Called with the number of further ledger rows that were read to find accounts. */
  rowsRead: (count: number) => void;
  accountsAudited: (count: number) => void;
  /** Called before a repeated audit of an account with findings. */
  waitingFor: (account: string) => void;
}

/** The audit of one account. */
interface Seen {
  /** Descriptions of mismatches. */
  findings: string[];
  rows: number;
  closesWithoutRow: number;
}

export interface LedgerAudit extends Seen {
  accounts: number;
}

export async function auditLedger(
  ports: OperatorPorts,
  { account: only, waitMs }: AuditInput,
  progress: AuditProgress,
): Promise<LedgerAudit> {
  const untilMs = ports.clock.now() + waitMs;
  const accounts = only === undefined ? await knownAccounts(ports, progress) : [only];
  const seen: Seen[] = [];
  for (const account of accounts) {
    seen.push(await auditUntil(ports, { account, untilMs }, progress));
    progress.accountsAudited(1);
  }
  const sum = (pick: (each: Seen) => number): number => seen.reduce((all, each) => all + pick(each), 0);
  return {
    accounts: accounts.length,
    rows: sum(({ rows }) => rows),
    findings: seen.flatMap(({ findings }) => findings),
    closesWithoutRow: sum((each) => each.closesWithoutRow),
  };
}

/** Every account that has an item, a grant or a ledger row. */
async function knownAccounts({ ledger }: OperatorPorts, { rowsRead }: AuditProgress): Promise<string[]> {
  const items = await Array.fromAsync(ledger.accounts());
  const grants = await Array.fromAsync(ledger.grants(), (page) => page.map(({ account }) => account));
  const accounts = new Set([...items, ...grants].flat());
  for await (const page of ledger.ledger({})) {
    for (const reading of page) if ('row' in reading) accounts.add(reading.row.account);
    rowsRead(page.length);
  }
  return [...accounts].toSorted();
}

const pauseMs = 2000;

/**
 * Repeats an audit with findings until the time is over, because ledger rows are written seconds after the
 * close.
 */
async function auditUntil(
  ports: OperatorPorts,
  { account, untilMs }: { account: string; untilMs: number },
  { waitingFor }: AuditProgress,
): Promise<Seen> {
  for (;;) {
    const seen = await auditOnce(ports, account);
    if (seen.findings.length === 0 || ports.clock.now() + pauseMs > untilMs) return seen;
    waitingFor(account);
    await ports.clock.sleep(pauseMs);
  }
}

async function auditOnce({ ledger, clock }: OperatorPorts, account: string): Promise<Seen> {
  const readMs = clock.now();
  const reading = await ledger.quota(account);
  if (reading && 'problem' in reading)
    return { findings: [`${account}: ${reading.problem}`], rows: 0, closesWithoutRow: 0 };
  const item = reading?.row ?? emptyQuota(account);
  const { rows, problems } = readingsOf((await Array.fromAsync(ledger.ledger({ account }))).flat());
  const grants = (await Array.fromAsync(ledger.grants(account))).flat();
  const records: AccountRecords = { account, item, readMs, rows, grants };
  return {
    findings: [...problems, ...rows.flatMap(rowFinding), ...auditAccount(records)],
    rows: rows.length,
    closesWithoutRow: closesWithoutRow(records),
  };
}

function rowFinding(row: LedgerRow): string[] {
  const problem = problemOf(row);
  return problem === undefined ? [] : [`${row.account}: ledger row ${row.id}: ${problem}`];
}
