/**
 * Divides the limits and the balance of a busy account among its shards: which shards a key uses, and the share of each limit that
 * holds in one. Each share is checked alone, so no call reads the other shards.
 */
import type { NanoYuan } from './money.ts';
import type { QuotaItem } from './quota-item.ts';
import type { PlanSlot, ReserveNeed } from './reservation.ts';

export const shardCountMax = 64;

// A metered call without limits needs no share of anything. It draws one of many counters, which are shards behind those of the
// balance. So each has few entries at 10,000 calls at once, and one write of it costs one unit.

export const firstCounter = 64;
export const countersMax = 2_048;

/** A call with a limit draws none, because each shard has a share of the limit. */
export function drawCounter(need: ReserveNeed, chance: number): number | undefined {
  const { slots, maxConcurrency, accountConcurrency, accountRpm, accountTpm } = need;
  const limits = [maxConcurrency, accountConcurrency, accountRpm, accountTpm];
  if (slots.length > 0 || limits.some((limit) => limit !== undefined)) return undefined;
  return firstCounter + Math.floor(chance * countersMax);
}

/** The shares of all shards add up to the whole. */
export const shareOf = (whole: number, shardCount: number, shard: number): number =>
  Math.floor(whole / shardCount) + (shard < whole % shardCount ? 1 : 0);

/** The first share has the remainder. */
export function divideEvenly(amount: NanoYuan, shardCount: number): NanoYuan[] {
  const share = amount / BigInt(shardCount);
  const remainder = amount - share * BigInt(shardCount);
  return Array.from({ length: shardCount }, (_, shard) => (shard === 0 ? share + remainder : share));
}

export interface ShardPosition {
  shardCount: number;
  shard: number;
}

type KeyLimits = Pick<ReserveNeed, 'key' | 'maxConcurrency'>;

/** A key uses at most as many shards as its concurrency limit, so that none has a share of 0. Keys are hashes, so this spreads them. */
function findShardsOfKey(
  { key, maxConcurrency }: KeyLimits,
  shardCount: number,
): { first: number; count: number } {
  if (maxConcurrency === undefined) return { first: 0, count: shardCount };
  const first = (Number.parseInt(key.slice(0, 8), 16) || 0) % shardCount;
  return { first, count: Math.min(maxConcurrency, shardCount) };
}

export const usesShard = (limits: KeyLimits, { shardCount, shard }: ShardPosition): boolean => {
  const { first, count } = findShardsOfKey(limits, shardCount);
  return (shard - first + shardCount) % shardCount < count;
};

export function shareNeed(need: ReserveNeed, at: ShardPosition): ReserveNeed {
  const { shardCount, shard } = at;
  if (shardCount === 1) return need;
  const { slots, maxConcurrency, accountConcurrency, accountRpm, accountTpm } = need;
  const shareHere = (limit: number | undefined): number | undefined =>
    limit === undefined ? undefined : shareOf(limit, shardCount, shard);
  const { first, count } = findShardsOfKey(need, shardCount);
  const share = usesShard(need, at)
    ? shareOf(maxConcurrency ?? 0, count, (shard - first + shardCount) % shardCount)
    : 0;
  return {
    ...need,
    slots: slots.map((slot) => Object.assign({}, slot, { limit: slot.limit && shareHere(slot.limit) })),
    maxConcurrency: maxConcurrency === undefined ? undefined : share,
    accountConcurrency: shareHere(accountConcurrency),
    accountRpm: shareHere(accountRpm),
    accountTpm: shareHere(accountTpm),
  };
}

/**
 * Picks the shard of a first try among those that the key uses; for a small plan slot, one with a share in it.
 * @param sums what is known of the account
 * @param chance in [0, 1)
 */
export function pickShard(
  need: ReserveNeed,
  sums: Pick<QuotaItem, 'shardCount' | 'plan'>,
  chance: number,
): number {
  const { shardCount, plan } = sums;
  if (shardCount === 1) return 0;
  const { first, count } = findShardsOfKey(need, shardCount);
  const slot = listSlotsWithRoom(need.slots, plan)[0];
  const most = first === 0 ? Math.min(count, Math.max(1, slot?.limit ?? count)) : count;
  return (first + Math.floor(chance * most)) % shardCount;
}

export const listSlotsWithRoom = (
  slots: readonly PlanSlot[],
  plan: ReadonlyMap<string, number>,
): PlanSlot[] => slots.filter(({ key, limit }) => limit === null || (plan.get(key) ?? 0) < limit);
