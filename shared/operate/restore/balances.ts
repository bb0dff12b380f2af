/**
 * Balances by their evidence: each account's item is made anew from all its ledger rows, so that no charge and no grant since
 * the copy is lost, and no row is applied twice. A copy says what no row has: calls that were open, charges whose row was lost.
 */
import { auditAccount, LedgerSums } from '../../billing/audit/account-audit.ts';
import { matchesRebuilt, rebuildAccount } from '../../billing/audit/rebuilt-account.ts';
import { findLedgerTimeMs } from '../../billing/ledger-row.ts';
import { larger, smaller } from '../../billing/money.ts';
import { createQuotaItem, findImbalance, type QuotaItem } from '../../billing/quota-item.ts';
import type { WholeAccount } from '../../billing/shards.ts';
import { compareCodeUnits } from '../../wire/json.ts';
import { listKnownAccounts } from '../ledger/audit-ledger.ts';
import { readingsOf } from '../ledger/ledger.ts';
import type { OperatorPorts, Reading } from '../operator-ports.ts';
import { formatCount, Failure, formatMoney, type Plan } from '../plan.ts';

interface Rebuilt {
  item: QuotaItem;
  /** Missing if it cannot be read or is gone. */
  seen: WholeAccount | undefined;
}

export interface CopyInput {
  /** Whole seconds, in epoch milliseconds. */
  atMs: number;
  /** The stack whose names the copies have. */
  copy: string;
}

export interface Rebuilding {
  ports: OperatorPorts;
  input: CopyInput;
}

export async function planBalances(run: Rebuilding): Promise<Plan<Rebuilt>> {
  const changes: Rebuilt[] = [];
  const effect: string[] = [];
  const warnings: string[] = [];
  for (const account of await listAllAccounts(run)) {
    const evidence = await readEvidence(run, account);
    const { live, rows, copy, open, problems } = evidence;
    warnings.push(
      ...problems,
      ...copyFindings(evidence).map((finding) => `at the restored time: ${finding}`),
    );
    const unexplained = sumUnrecordedCharges(evidence);
    const item = rebuildAccount(account, { rows, open, unexplained, last: live?.last ?? copy?.last });
    if (live ? matchesRebuilt(live, item, rows) : rows.rows === 0 && copy === undefined) continue;
    changes.push({ item, seen: live });
    const was = live ? moneyOf(live) : 'unreadable or deleted';
    effect.push(`${account}: ${was} -> ${moneyOf(item)}`);
  }
  const questions =
    changes.length === 0 ? [] : [`Restore the balances of ${formatCount(changes.length, 'account')}?`];
  return { changes, effect, warnings, questions };
}

export async function carryOutBalances(
  { ports: { copies } }: Rebuilding,
  { changes }: Plan<Rebuilt>,
): Promise<void> {
  for (const { item, seen } of changes)
    if (!(await copies.replaceQuota(item, seen)))
      throw new Failure(
        `the balance of ${item.account} changed in the meantime and was not touched: re-run the command`,
      );
}

/** Compares the balances of the copy with the ledger, as of its second. Writes nothing. */
export async function checkBalances(run: Rebuilding): Promise<{ accounts: number; findings: string[] }> {
  const findings: string[] = [];
  let accounts = 0;
  for await (const page of run.ports.copies.accounts(run.input.copy))
    for (const account of page) {
      accounts += 1;
      const evidence = await readEvidence(run, account);
      findings.push(...evidence.problems, ...copyFindings(evidence));
    }
  return { accounts, findings };
}

/**
 * Findings of an audit that exist only because rows were lost: the account was charged, by the copy, for something
 * no row records. The words contain the amounts, so nothing else is among them.
 */
export async function findLostRows(run: Rebuilding, account: string, of: 'live' | 'copy'): Promise<string[]> {
  const evidence = await readEvidence(run, account);
  const item = evidence[of];
  if (!item) return [];
  const { charged, metered } = sumUnrecordedCharges(evidence);
  const charges = { spent: item.spent - charged, metered: (item.metered ?? 0n) - metered };
  const rest = new Set(findingsOf(evidence, of, { ...item, ...charges }));
  return findingsOf(evidence, of, item).filter((finding) => !rest.has(finding));
}

async function listAllAccounts({ ports, input }: Rebuilding): Promise<string[]> {
  const accounts = new Set(await listKnownAccounts(ports));
  for await (const page of ports.copies.accounts(input.copy))
    for (const account of page) accounts.add(account);
  return [...accounts].toSorted(compareCodeUnits);
}

/** Rows that began so shortly before or after the second may be in the copy or not. */
const doubtMs = 10_000;

/** `rows`: the sums of all rows; `atCopy`: of those that the copy can have. `open`: what was open in the copy, without a row since. */
type Evidence = Awaited<ReturnType<typeof readEvidence>>;

async function readEvidence(
  { ports: { ledger, copies, clock }, input: { atMs, copy: stack } }: Rebuilding,
  account: string,
) {
  const live = rowOf(await ledger.quota(account));
  const copied = await copies.quota(stack, account);
  const copy = rowOf(copied);
  const rows = new LedgerSums(createQuotaItem(account), clock.now());
  const atCopy = new LedgerSums(copy ?? createQuotaItem(account), atMs);
  const open = new Map([...(copy?.open ?? [])].filter(([, { tombstone }]) => !tombstone));
  const problems = copied && 'problem' in copied ? [`the copy of ${account}: ${copied.problem}`] : [];
  for await (const page of ledger.ledger({ account })) {
    const read = readingsOf(page);
    problems.push(...read.problems);
    for (const row of read.rows) {
      rows.add(row);
      open.delete(row.id);
      if (findLedgerTimeMs(row) < atMs + doubtMs) atCopy.add(row);
    }
  }
  return { account, atMs, live, copy, rows, atCopy, open, problems };
}

/** Only a copy that balances proves anything; otherwise only rows count. */
function sumUnrecordedCharges({ copy, atCopy: { all } }: Evidence) {
  if (!copy || findImbalance(copy) !== undefined) return { charged: 0n, metered: 0n };
  const charged = larger(0n, copy.spent - all.charged);
  return { charged, metered: smaller(charged, larger(0n, (copy.metered ?? 0n) - all.metered)) };
}

const copyFindings = (evidence: Evidence): string[] =>
  evidence.copy ? findingsOf(evidence, 'copy', evidence.copy) : [];

const findingsOf = (
  { account, atMs, rows, atCopy }: Evidence,
  of: 'live' | 'copy',
  item: WholeAccount,
): string[] =>
  auditAccount({ account, item, readMs: atMs, ledger: of === 'copy' ? atCopy : rows, grants: [] });

const rowOf = (reading: Reading<WholeAccount> | undefined): WholeAccount | undefined =>
  reading && 'row' in reading ? reading.row : undefined;

const moneyOf = ({ available, spent, granted }: QuotaItem): string =>
  `${formatMoney(available)} left of ${formatMoney(granted)}, ${formatMoney(spent)} spent`;
