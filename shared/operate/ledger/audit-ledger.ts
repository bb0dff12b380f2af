import { readFile } from 'node:fs/promises';
import { emptyQuota } from '../../billing/quota-item.ts';
import type { LedgerRow } from '../../billing/ledger-row.ts';
import { auditAccount, closesWithoutRow, type AccountRecords } from '../../billing/audit/account-audit.ts';
import { repairLosses } from './repair-losses.ts';
import { Failure, usageFailure } from '../operator-failure.ts';
import { Progress } from '../../../infra/ops/cli/terminal/progress.ts';
import { problemOf } from '../../billing/audit/recompute.ts';
import type { Session } from '../../../infra/ops/session/session.ts';
import { readInput, remark, say, sayJson } from '../../../infra/ops/cli/terminal/terminal.ts';

export interface AuditOptions {
  account?: string;
  repair?: string;
  /** Seconds. */
  wait: number;
}

const pauseMs = 2000;

/** What was seen of one account. */
interface Seen {
  findings: string[];
  rows: number;
  closesWithoutRow: number;
}

interface Audit extends Seen {
  accounts: number;
}

/** Adds everything up again, from grants and ledger alone. Throws a Failure when something does not fit. */
export async function auditBooks(session: Session, options: AuditOptions, nowMs: number): Promise<void> {
  const audit: Audit = { accounts: 0, rows: 0, findings: [], closesWithoutRow: 0 };
  if (options.repair !== undefined) {
    const lines = await readLines(options.repair);
    audit.findings.push(...(await repairLosses(session, lines)));
  }
  const untilMs = nowMs + options.wait * 1000;
  const progress = new Progress('accounts audited');
  for (const account of await accountsToAudit(session, options.account)) {
    const seen = await auditPatiently(session, account, untilMs);
    audit.findings.push(...seen.findings);
    audit.accounts += 1;
    audit.rows += seen.rows;
    audit.closesWithoutRow += seen.closesWithoutRow;
    progress.add(1);
  }
  report(session, audit);
}

async function readLines(source: string): Promise<string> {
  if (source === '-') return readInput('Paste the log lines');
  return readFile(source, 'utf8').catch(() => {
    throw usageFailure(`the file ${source} cannot be read`);
  });
}

/** Every account that any of the ledger knows. */
async function accountsToAudit(session: Session, only: string | undefined): Promise<string[]> {
  if (only !== undefined) return [only];
  const accounts = new Set<string>();
  for await (const page of session.ledger.accounts()) for (const account of page) accounts.add(account);
  for await (const page of session.ledger.grants()) for (const { account } of page) accounts.add(account);
  const progress = new Progress('ledger rows read');
  for await (const page of session.ledger.ledger({})) {
    for (const reading of page) if ('row' in reading) accounts.add(reading.row.account);
    progress.add(page.length);
  }
  return [...accounts].toSorted();
}

/** Ledger rows follow their close by seconds: what does not fit yet is looked at again. */
async function auditPatiently(session: Session, account: string, untilMs: number): Promise<Seen> {
  for (;;) {
    const seen = await auditOnce(session, account);
    if (seen.findings.length === 0 || Date.now() + pauseMs > untilMs) return seen;
    remark(`${account}: waiting for ledger rows that may be on their way`);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

async function auditOnce(session: Session, account: string): Promise<Seen> {
  const readMs = Date.now();
  const reading = await session.ledger.quota(account);
  if (reading && 'problem' in reading)
    return { findings: [`${account}: ${reading.problem}`], rows: 0, closesWithoutRow: 0 };
  const item = reading?.row ?? emptyQuota(account);
  const records: AccountRecords = { account, item, readMs, rows: [], grants: [] };
  const findings: string[] = [];
  for await (const page of session.ledger.ledger({ account })) {
    for (const each of page) {
      if ('problem' in each) findings.push(`${each.key}: ${each.problem}`);
      else records.rows.push(each.row);
    }
  }
  for await (const page of session.ledger.grants(account)) records.grants.push(...page);
  findings.push(...records.rows.flatMap(rowFinding), ...auditAccount(records));
  return { findings, rows: records.rows.length, closesWithoutRow: closesWithoutRow(records) };
}

function rowFinding(row: LedgerRow): string[] {
  const problem = problemOf(row);
  return problem === undefined ? [] : [`${row.account}: ledger row ${row.id}: ${problem}`];
}

function report(session: Session, audit: Audit): void {
  const { accounts, rows, findings } = audit;
  if (session.json) sayJson({ accounts, rows, findings, closes_without_row: audit.closesWithoutRow });
  else findings.forEach((finding) => say(finding));
  if (audit.closesWithoutRow > 0)
    remark(
      `${audit.closesWithoutRow} closes have no row of their own: guards of lost replies, which cost nothing`,
    );
  const read = `${accounts} accounts and ${rows} ledger rows`;
  if (findings.length > 0) throw new Failure(`${findings.length} findings in ${read}`);
  if (!session.json) say(`${read}: everything adds up.`);
}
