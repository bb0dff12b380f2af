import type { NanoYuan } from './price.ts';
import type { QuotaItem } from './quota-item.ts';
import type { PlanSlot, ReserveNeed } from './reservation.ts';

/** A balance is shared out over so many parts at most. */
export const partsMax = 64;

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
export const shareOf = (whole: number, parts: number, part: number): number =>
  Math.floor(whole / parts) + (part < whole % parts ? 1 : 0);

/** An amount in equal shares, the rest in the first one. */
export function evenly(amount: NanoYuan, parts: number): NanoYuan[] {
  const share = amount / BigInt(parts);
  const rest = amount - share * BigInt(parts);
  return Array.from({ length: parts }, (_, part) => (part === 0 ? share + rest : share));
}

export interface PartPosition {
  parts: number;
  part: number;
}

type KeyLimits = Pick<ReserveNeed, 'key' | 'maxConcurrency'>;

/**
 * The parts that a key uses: `count` of them from `first` on. As many as its concurrency limit, so that a small one is
 * not split; keys are hashes, so these are spread.
 */
function partsOfKey({ key, maxConcurrency }: KeyLimits, parts: number): { first: number; count: number } {
  if (maxConcurrency === undefined) return { first: 0, count: parts };
  const first = (Number.parseInt(key.slice(0, 8), 16) || 0) % parts;
  return { first, count: Math.min(maxConcurrency, parts) };
}

export const usesPart = (limits: KeyLimits, { parts, part }: PartPosition): boolean => {
  const { first, count } = partsOfKey(limits, parts);
  return (part - first + parts) % parts < count;
};

/** The need of a call with the limits that hold in one part: its shares in the plan, the key and the account. */
export function needOn(need: ReserveNeed, at: PartPosition): ReserveNeed {
  const { parts, part } = at;
  if (parts === 1) return need;
  const { slots, maxConcurrency, accountConcurrency, accountRpm, accountTpm } = need;
  const shareHere = (limit: number | undefined): number | undefined =>
    limit === undefined ? undefined : shareOf(limit, parts, part);
  const { first, count } = partsOfKey(need, parts);
  const share = usesPart(need, at) ? shareOf(maxConcurrency ?? 0, count, (part - first + parts) % parts) : 0;
  return {
    ...need,
    slots: slots.map((slot) => slotOn(slot, at)),
    maxConcurrency: maxConcurrency === undefined ? undefined : share,
    accountConcurrency: shareHere(accountConcurrency),
    accountRpm: shareHere(accountRpm),
    accountTpm: shareHere(accountTpm),
  };
}

const slotOn = (slot: PlanSlot, { parts, part }: PartPosition): PlanSlot => ({
  ...slot,
  limit: slot.limit === null ? null : shareOf(slot.limit, parts, part),
});

/**
 * The part of a first try, one of those that the key uses; for a small plan slot, one with a share in it.
 * `chance`: in [0, 1). `sums`: what is known of the account.
 */
export function pickPart(need: ReserveNeed, sums: Pick<QuotaItem, 'parts' | 'plan'>, chance: number): number {
  const { parts, plan } = sums;
  if (parts === 1) return 0;
  const { first, count } = partsOfKey(need, parts);
  const slot = roomySlots(need.slots, plan)[0];
  const most = first === 0 ? Math.min(count, Math.max(1, slot?.limit ?? count)) : count;
  return (first + Math.floor(chance * most)) % parts;
}

export const roomySlots = (slots: readonly PlanSlot[], plan: ReadonlyMap<string, number>): PlanSlot[] =>
  slots.filter(({ key, limit }) => limit === null || (plan.get(key) ?? 0) < limit);
