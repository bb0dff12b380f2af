/**
 * Repeats closes that log lines report as lost or late. Uses the relay's conditional writes: nothing closes twice, and
 * what an expired reservation did not charge is charged once.
 */
import type { NanoYuan } from '../../billing/money.ts';
import { parseLosses } from '../../billing/audit/loss-lines.ts';
import { latePrefix, buildLateRow, type CloseRow } from '../../billing/ledger-row.ts';
import type { CloseRecord, OpenEntry, CloseWrite } from '../../billing/quota-item.ts';
import { formatCount, Failure, formatMoney } from '../plan.ts';
import type { OperatorPorts } from '../operator-ports.ts';

/** `changes`: the lost closes; what was closed meanwhile is looked up when they are carried out. */
type RepairPlan = Awaited<ReturnType<typeof planRepairLosses>>;

export type LossOutcome =
  | { outcome: 'closed' | 'closed before' | 'charged late'; account: string; id: string; charge: NanoYuan }
  | { outcome: 'not closed'; finding: string };

/** @param text log lines */
export async function planRepairLosses({ ledger }: OperatorPorts, text: string) {
  const losses = parseLosses(text);
  if (losses.length === 0) throw new Failure('the input has no settle_lost or settle_late log lines');
  const closes: CloseWrite[] = [];
  for (const { account, releaseSlot, closeRecord } of losses) {
    const { id } = closeRecord;
    const reading = await ledger.quota(account);
    const row = reading && 'row' in reading ? reading.row : undefined;
    const entry = row?.open.get(id);
    const part = row?.shards?.find(({ open }) => open.has(id))?.shard;
    if (entry) closes.push({ account, shard: part, id, entry, releaseSlot, closeRecord });
  }
  const effect = losses.map(({ account, closeRecord: { id, charge } }) =>
    closes.some((close) => close.id === id)
      ? `Settle request ${id} of ${account}: charge ${formatMoney(charge)}`
      : `Request ${id} of ${account} is no longer open: charge up to ${formatMoney(charge)} if it expired`,
  );
  return { changes: losses, effect, questions: [`Settle ${formatCount(losses.length, 'request')}?`], closes };
}

/** One outcome for each lost close, in the order of the log lines. */
export async function carryOutRepairLosses(
  ports: OperatorPorts,
  { changes, closes }: RepairPlan,
): Promise<LossOutcome[]> {
  const outcomes: LossOutcome[] = [];
  for (const { account, closeRecord } of changes) {
    const { id, charge } = closeRecord;
    const write = closes.find((close) => close.id === id);
    const isClosed = write !== undefined && (await ports.ledger.close(write)).done;
    outcomes.push(
      isClosed ? { outcome: 'closed', account, id, charge } : await checkClosed(ports, account, closeRecord),
    );
  }
  return outcomes;
}

/** The outcome if nothing was closed: the sweeper or an earlier repair may have closed the reservation. */
async function checkClosed(ports: OperatorPorts, account: string, wanted: CloseRecord): Promise<LossOutcome> {
  const { id } = wanted;
  const request = `${account}: request ${id}`;
  const reading = await ports.ledger.request(id);
  const row = reading && 'row' in reading ? reading.row : undefined;
  // The row of a guard is replaced by the call's own, which may be on its way.
  if (!row || row.kind === 'grant' || row.kind === 'cancelled')
    return {
      outcome: 'not closed',
      finding: `${request} is not open and has no ledger row yet: try again in a minute`,
    };
  const { kind, charge } = row;
  if (kind === wanted.kind && charge === wanted.charge)
    return { outcome: 'closed before', account, id, charge };
  if (kind === 'expired') return chargeDifference(ports, row, wanted);
  return {
    outcome: 'not closed',
    finding: `${request} was ${kind} in the meantime and charged ${formatMoney(charge)} instead of ${formatMoney(wanted.charge)}: correct it with a grant`,
  };
}

/** Charges the difference to what the expiry charged, unless the relay or an earlier repair did. */
async function chargeDifference(
  { ledger }: OperatorPorts,
  expired: CloseRow,
  closeRecord: CloseRecord,
): Promise<LossOutcome> {
  const { account, id } = expired;
  const difference = closeRecord.charge - expired.charge;
  if (difference === 0n || (await ledger.request(latePrefix + id)) !== undefined)
    return { outcome: 'closed before', account, id, charge: closeRecord.charge };
  // Under the key of the relay's own, so that only one of them is put.
  const row = {
    ...buildLateRow({ account, entry: entryOf(expired), closeRecord }, difference),
    bucket: expired.bucket,
  };
  await ledger.chargeLate({ difference, row });
  return { outcome: 'charged late', account, id, charge: difference };
}

/**
 * Rebuilds the open entry from the row. A call that the balance did not pay is not charged late. An earlier
 * version may have reserved without a tariff, so none is invented: the audit compares the late charge with it.
 */
const entryOf = ({ search_price: searchPrice = 0n, tariff, ...row }: CloseRow): OpenEntry => ({
  until: 0,
  amount: 0n,
  input: row.charge - searchPrice,
  searchPrice,
  key: row.key,
  model: row.model,
  price: row.price,
  tariff,
  slot: '',
  budget: row.budget,
  official: false,
  tombstone: false,
  metered: row.metered,
});
