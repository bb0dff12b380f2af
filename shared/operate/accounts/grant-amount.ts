/** Writes a grant, once whatever happens, and waits until the relay has applied it. */
import { formatYuan, parseYuan, type NanoYuan } from '../../billing/amount.ts';
import type { WrittenGrant } from '../../billing/grant.ts';
import { GrantRow } from '../../config/rows/grant-row.ts';
import { readRow } from '../../config/rows/read-row.ts';
import { isoTime } from '../../wire/iso-time.ts';
import { Failure, usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { Plan } from '../plan.ts';
import { ExactNumber } from '../row-tables.ts';
import type { NewRow } from '../row-writes.ts';
import { findAccount } from './find-account.ts';

export interface GrantInput {
  account: string;
  /** Yuan as typed, with at most 9 decimals; below zero: a correction. */
  amount: string;
  reason?: string | undefined;
  /** Names the grant: the same id is never applied twice. Default: a new one. */
  id?: string | undefined;
  /** Makes the account when there is none. */
  isNew?: boolean | undefined;
}

export interface GrantPlan extends Plan<NewRow> {
  account: string;
  grantId: string;
  amount: NanoYuan;
}

export interface WrittenGrantResult {
  account: string;
  grantId: string;
  amount: NanoYuan;
  isNewAccount: boolean;
  /** The same grant was there: an earlier run wrote it. */
  wasWritten: boolean;
}

export async function planGrantAmount(ports: OperatorPorts, input: GrantInput): Promise<GrantPlan> {
  const { account, reason } = input;
  const nowMs = ports.clock.now();
  const grantId = input.id ?? newGrantId(nowMs, ports);
  const facts = { account, grant_id: grantId, ...(reason !== undefined && { reason }) };
  const reading = readRow(GrantRow, { ...facts, amount: input.amount });
  if ('problem' in reading) throw usageFailure(`nothing was written: ${reading.problem}`);
  const { amount } = reading.row;
  const { row, isMissing } = await findAccount(ports, account, input.isNew);
  const grant = { ...facts, amount: new ExactNumber(formatYuan(amount)), _created: isoTime(nowMs) };
  const newGrant: NewRow = { kind: 'create', table: 'grants', row: grant };
  return {
    changes: isMissing ? [{ kind: 'create', table: 'accounts', row }, newGrant] : [newGrant],
    effect: [
      ...(isMissing ? [`account ${account} is new`] : []),
      `account ${account} is granted ${formatYuan(amount)} yuan, once, as ${grantId}`,
    ],
    questions: [],
    account,
    grantId,
    amount,
  };
}

/** Sorts by time. */
const newGrantId = (nowMs: number, { random }: OperatorPorts): string =>
  `${isoTime(nowMs).replaceAll(/[-:]/g, '')}-${random.hex(4)}`;

export async function carryOutGrantAmount(
  ports: OperatorPorts,
  { changes, account, grantId, amount }: GrantPlan,
): Promise<WrittenGrantResult> {
  let isNewAccount = false;
  let wasWritten = false;
  for (const { table, row } of changes) {
    const isCreated = await ports.tables.create(table, row);
    if (table === 'accounts') isNewAccount = isCreated;
    else wasWritten = !isCreated;
  }
  const result = { account, grantId, amount, isNewAccount, wasWritten };
  if (!wasWritten) return result;
  // A command that is repeated with its id finds its own row.
  const there = await grantOf(ports, account, grantId);
  if (there && parseYuan(there.amount) === amount) return result;
  throw new Failure(
    `there is a grant ${grantId} of ${there?.amount ?? 'another amount'} already: choose another --id`,
  );
}

async function grantOf(
  { ledger }: OperatorPorts,
  account: string,
  grantId: string,
): Promise<WrittenGrant | undefined> {
  for await (const page of ledger.grants(account)) {
    const found = page.find((grant) => grant.grantId === grantId);
    if (found) return found;
  }
  return undefined;
}

const pauseMs = 300;

/** @returns the balance after it; undefined: it is not applied yet, or the account's item cannot be read */
export async function awaitApplied(
  ports: OperatorPorts,
  { account, grantId, waitMs }: { account: string; grantId: string; waitMs: number },
): Promise<{ isApplied: boolean; available?: NanoYuan }> {
  const { clock, ledger } = ports;
  const untilMs = clock.now() + waitMs;
  for (;;) {
    const grant = await grantOf(ports, account, grantId);
    if (grant?.problem !== undefined) throw new Failure(`the relay does not take it: ${grant.problem}`);
    if (grant?.applied !== undefined) break;
    if (clock.now() + pauseMs > untilMs) return { isApplied: false };
    await clock.sleep(pauseMs);
  }
  const quota = await ledger.quota(account);
  return { isApplied: true, ...(quota && 'row' in quota && { available: quota.row.available }) };
}
