/** The effect of transactions over an account's parts on each part, in plain code. */
import type { ShardChange, ShardsWrite } from '../../shared/billing/shards.ts';
import { createQuotaItem, type QuotaItem } from '../../shared/billing/quota-item.ts';
import type { LateCharge } from '../../shared/relay/ports/money-stores.ts';
import { copy } from './quota-rules.ts';

/** Whether the conditions of a change hold; `item` is the part, if it exists. */
export function mayChange(
  item: QuotaItem | undefined,
  change: ShardChange,
  { shardCount: parts, overdraft }: ShardsWrite,
): boolean {
  const { seenShardCount: seenParts, moved, plan, settledBefore } = change;
  if (!item || seenParts === undefined) return item === undefined && seenParts === undefined;
  const { minute } = change;
  const counts = item.rate;
  if (minute && (counts?.minute !== minute.seen?.minute || counts?.count !== minute.seen?.count))
    return false;
  if (minute && (counts?.tokens ?? 0) !== (minute.seen?.tokens ?? 0)) return false;
  if (item.shardCount !== seenParts) return false;
  const leavesNoDebt = overdraft === 'ends' || overdraft === 'none';
  if ((leavesNoDebt || (moved < 0n && parts !== 1)) && item.available < -moved) return false;
  if (leavesNoDebt && (item.overdraft ?? false) !== (overdraft === 'ends')) return false;
  const slotsFit = [...plan].every(([key, { countedMax }]) => (item.plan.get(key) ?? 0) <= countedMax);
  if (!slotsFit || settledBefore === undefined) return slotsFit;
  return item.settled === settledBefore && item.open.size === 0 && item.available === -moved;
}

/** The part after a change that `mayChange` allows. */
export function afterChange(item: QuotaItem | undefined, change: ShardChange, write: ShardsWrite): QuotaItem {
  const next = copy(item ?? createQuotaItem(write.account, change.shard));
  next.available += change.moved;
  next.moved += change.moved;
  next.shardCount = write.shardCount ?? next.shardCount;
  if (write.overdraft === 'begins') next.overdraft = true;
  if (write.overdraft === 'ends' || write.shardCount === 1) next.overdraft = undefined;
  if (change.shard === 0) next.highestShardCount = write.highestShardCount ?? next.highestShardCount;
  if (change.minute) next.rate = change.minute.counted;
  for (const [key, { calls }] of change.plan)
    if (calls !== 0) next.plan.set(key, (next.plan.get(key) ?? 0) + calls);
  return next;
}

export const afterLateCharge = (item: QuotaItem, { difference, row }: LateCharge): QuotaItem => ({
  ...item,
  ...(row.metered
    ? { metered: (item.metered ?? 0n) + difference }
    : { available: item.available - difference }),
  spent: item.spent + difference,
  settled: item.settled + 1,
  last: { id: row.id, kind: row.kind, charge: row.charge, at: Date.parse(row.at) / 1000 },
});
