import type { NanoYuan } from './price.ts';
import type { QuotaItem } from './quota-item.ts';
import type { PlanSlot, ReserveNeed } from './reservation.ts';

/** A balance is shared out over so many parts at most. */
export const shardCountMax = 64;

// Calls that nothing limits by shares take nothing that parts must have: each draws one of many counters, which are parts
// beyond those of the balance. So each has few entries at 10,000 calls at once, and one write of it costs one unit.

/** The number of parts that a balance can have: theirs are below it. */
export const firstCounter = 64;
export const countersMax = 2_048;

/** The counter that a call of a metered account draws; undefined: it has a limit of which each part has a share. */
export function drawCounter(need: ReserveNeed, chance: number): number | undefined {
  const { slots, maxConcurrency, accountConcurrency, accountRpm, accountTpm } = need;
  const limits = [maxConcurrency, accountConcurrency, accountRpm, accountTpm];
  if (slots.length > 0 || limits.some((limit) => limit !== undefined)) return undefined;
  return firstCounter + Math.floor(chance * countersMax);
}

/** The share of one part in a whole number: the shares of all parts add up to it. */
export const shareOf = (whole: number, shardCount: number, shard: number): number =>
  Math.floor(whole / shardCount) + (shard < whole % shardCount ? 1 : 0);

/** An amount in equal shares, the rest in the first one. */
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

/**
 * The parts that a key uses: `count` of them from `first` on. As many as its concurrency limit, so that a small one is
 * not split; keys are hashes, so these are spread.
 */
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

/** The need of a call with the limits that hold in one part: its shares in the plan, the key and the account. */
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
    slots: slots.map((slot) => shareSlot(slot, at)),
    maxConcurrency: maxConcurrency === undefined ? undefined : share,
    accountConcurrency: shareHere(accountConcurrency),
    accountRpm: shareHere(accountRpm),
    accountTpm: shareHere(accountTpm),
  };
}

const shareSlot = (slot: PlanSlot, { shardCount, shard }: ShardPosition): PlanSlot => ({
  ...slot,
  limit: slot.limit === null ? null : shareOf(slot.limit, shardCount, shard),
});

/**
 * The part of a first try, one of those that the key uses; for a small plan slot, one with a share in it.
 * `chance`: in [0, 1). `sums`: what is known of the account.
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
