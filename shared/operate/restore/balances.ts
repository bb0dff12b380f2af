/**
 * Balances by their evidence: each account's item is made anew from all its ledger rows, so that no charge and no grant since
 * the copy is lost, and no row is applied twice. A copy says what no row has: calls that were open, charges whose row was lost.
 */
import { auditAccount, LedgerSums } from '../../billing/audit/account-audit.ts';
import { isAsRebuilt, rebuiltAccount } from '../../billing/audit/rebuilt-account.ts';
import { ledgerTimeMs } from '../../billing/ledger-row.ts';
import { formatYuan, larger, smaller } from '../../billing/price.ts';
import { emptyQuota, imbalance, type OpenEntry, type QuotaItem } from '../../billing/quota-item.ts';
import type { WholeAccount } from '../../billing/shards.ts';
import { compareCodeUnits } from '../../wire/json.ts';
import { knownAccounts } from '../ledger/audit-ledger.ts';
import { readingsOf } from '../ledger/ledger.ts';
import type { OperatorPorts, Reading } from '../operator-ports.ts';
import { Failure, type Plan } from '../plan.ts';

interface Rebuilt {
  item: QuotaItem;
  /** Undefined: it cannot be read, or is gone. */
  seen: WholeAccount | undefined;
}

export interface CopyInput {
  /** Whole seconds, in epoch milliseconds. */
  atMs: number;
  /** The stack whose names the copies have. */
  copy: string;
}

/** @param onRows is told how many rows were read */
export async function planBalances(
  ports: OperatorPorts,
  input: CopyInput,
  onRows: (count: number) => void,
): Promise<Plan<Rebuilt>> {
  const changes: Rebuilt[] = [];
  const effect: string[] = [];
  const warnings: string[] = [];
  for (const account of await allAccounts(ports, input, onRows)) {
    const evidence = await readEvidence(ports, { account, ...input }, onRows);
    const { live, rows, atCopy, copy, open, problems } = evidence;
    const findings = copy ? copyFindings(evidence, input.atMs) : [];
    warnings.push(...problems, ...findings.map((finding) => `at that second, ${finding}`));
    const isSound = copy && imbalance(copy) === undefined;
    const charged = larger(0n, isSound ? copy.spent - atCopy.all.charged : 0n);
    const beyond = isSound ? (copy.metered ?? 0n) - atCopy.all.metered : 0n;
    const unexplained = { charged, metered: smaller(charged, larger(0n, beyond)) };
    const item = rebuiltAccount(account, { rows, open, unexplained, last: live?.last ?? copy?.last });
    if (live ? isAsRebuilt(live, item, rows) : rows.rows === 0 && copy === undefined) continue;
    changes.push({ item, seen: live });
    const was = live ? moneyOf(live) : 'not readable, or gone';
    effect.push(`${account}: ${was} -> ${moneyOf(item)}`);
  }
  const questions =
    changes.length === 0 ? [] : [`Write the balances of these ${changes.length} accounts anew?`];
  return { changes, effect, warnings, questions };
}

export async function carryOutBalances({ copies }: OperatorPorts, { changes }: Plan<Rebuilt>): Promise<void> {
  for (const { item, seen } of changes)
    if (!(await copies.replaceQuota(item, seen)))
      throw new Failure(
        `the balance of ${item.account} changed meanwhile and was left as it is: repeat the command`,
      );
}

/** Compares the balances of the copy with the ledger, as of its second. Writes nothing. */
export async function checkBalances(
  ports: OperatorPorts,
  input: CopyInput,
  onRows: (count: number) => void,
): Promise<{ accounts: number; findings: string[] }> {
  const findings: string[] = [];
  let accounts = 0;
  for await (const page of ports.copies.accounts(input.copy))
    for (const account of page) {
      accounts += 1;
      const evidence = await readEvidence(ports, { account, ...input }, onRows);
      findings.push(...evidence.problems, ...copyFindings(evidence, input.atMs));
    }
  return { accounts, findings };
}

async function allAccounts(
  ports: OperatorPorts,
  { copy }: CopyInput,
  rowsRead: (count: number) => void,
): Promise<string[]> {
  const accounts = new Set(await knownAccounts({ ports, progress: { rowsRead } }));
  for await (const page of ports.copies.accounts(copy)) for (const account of page) accounts.add(account);
  return [...accounts].toSorted(compareCodeUnits);
}

/** Rows that began so shortly before or after the second may be in the copy or not. */
const doubtMs = 10_000;

interface Evidence {
  account: string;
  live: WholeAccount | undefined;
  copy: WholeAccount | undefined;
  /** Of all rows, and of those that the copy can have. */
  rows: LedgerSums;
  atCopy: LedgerSums;
  /** Open in the copy, without a row since. */
  open: Map<string, OpenEntry>;
  problems: string[];
}

async function readEvidence(
  ports: OperatorPorts,
  { account, atMs, copy: stack }: CopyInput & { account: string },
  onRows: (count: number) => void,
): Promise<Evidence> {
  const { ledger, copies, clock } = ports;
  const live = rowOf(await ledger.quota(account));
  const copied = await copies.quota(stack, account);
  const copy = rowOf(copied);
  const rows = new LedgerSums(emptyQuota(account), clock.now());
  const atCopy = new LedgerSums(copy ?? emptyQuota(account), atMs);
  const open = new Map([...(copy?.open ?? [])].filter(([, { tombstone }]) => !tombstone));
  const problems = copied && 'problem' in copied ? [`the copy of ${account}: ${copied.problem}`] : [];
  for await (const page of ledger.ledger({ account })) {
    const read = readingsOf(page);
    problems.push(...read.problems);
    for (const row of read.rows) {
      rows.add(row);
      open.delete(row.id);
      if (ledgerTimeMs(row) < atMs + doubtMs) atCopy.add(row);
    }
    onRows(page.length);
  }
  return { account, live, copy, rows, atCopy, open, problems };
}

const copyFindings = ({ account, copy, atCopy }: Evidence, atMs: number): string[] =>
  copy ? auditAccount({ account, item: copy, readMs: atMs, ledger: atCopy, grants: [] }) : [];

const rowOf = (reading: Reading<WholeAccount> | undefined): WholeAccount | undefined =>
  reading && 'row' in reading ? reading.row : undefined;

const moneyOf = ({ available, spent, granted }: QuotaItem): string =>
  `${formatYuan(available)} left of ${formatYuan(granted)}, ${formatYuan(spent)} spent`;
