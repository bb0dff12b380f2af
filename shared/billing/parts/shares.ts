import type { PlanSlot } from '../plans/plan-slots.ts';
import type { QuotaItem } from '../quota-item.ts';
import type { ReserveNeed } from '../reservation.ts';

/** The share of one part in a whole number: the shares of all parts add up to it. */
export const shareOf = (whole: number, parts: number, part: number): number =>
  Math.floor(whole / parts) + (part < whole % parts ? 1 : 0);

/** The parts that a key with a concurrency limit uses: as many as its limit, so that a small one is not split. */
const placeParts = (limit: number, parts: number): number => Math.min(limit, parts);

/** Where a key's parts start. Keys are hashes, so this spreads small limits over the parts. */
const firstPartOf = (key: string, parts: number): number =>
  (Number.parseInt(key.slice(0, 8), 16) || 0) % parts;

/** The share of one part in a key's concurrency limit. */
export function placeShare(
  need: Pick<ReserveNeed, 'key'>,
  limit: number,
  { parts, part }: PartPosition,
): number {
  const used = placeParts(limit, parts);
  const position = (part - firstPartOf(need.key, parts) + parts) % parts;
  return position < used ? shareOf(limit, used, position) : 0;
}

export interface PartPosition {
  parts: number;
  part: number;
}

/** The need of a call with the limits that hold in one part: its shares in the plan, the key and the account. */
export function needOn(need: ReserveNeed, at: PartPosition): ReserveNeed {
  const { parts, part } = at;
  if (parts === 1) return need;
  const { slots, maxConcurrency, accountConcurrency, accountRpm, accountTpm } = need;
  const share = (limit: number | undefined): number | undefined =>
    limit === undefined ? undefined : shareOf(limit, parts, part);
  return {
    ...need,
    slots: slots.map((slot) => ({
      ...slot,
      limit: slot.limit === null ? null : shareOf(slot.limit, parts, part),
    })),
    maxConcurrency: maxConcurrency === undefined ? undefined : placeShare(need, maxConcurrency, at),
    accountConcurrency: share(accountConcurrency),
    accountRpm: share(accountRpm),
    accountTpm: share(accountTpm),
  };
}

/**
 * The part of a first try: any, but one in which the call's limits have a share. `chance`: in [0, 1).
 * `known`: what is known of the sums of the account.
 */
export function pickPart(
  need: ReserveNeed,
  { parts, plan }: Pick<QuotaItem, 'parts' | 'plan'>,
  chance: number,
): number {
  if (parts === 1) return 0;
  const { key, maxConcurrency } = need;
  if (maxConcurrency !== undefined)
    return (firstPartOf(key, parts) + Math.floor(chance * placeParts(maxConcurrency, parts))) % parts;
  const slot = roomySlots(need.slots, plan)[0];
  return Math.floor(chance * Math.min(parts, slot?.limit ?? parts));
}

/** The slots that were not seen full. */
export const roomySlots = (slots: readonly PlanSlot[], plan: ReadonlyMap<string, number>): PlanSlot[] =>
  slots.filter(({ key, limit }) => limit === null || (plan.get(key) ?? 0) < limit);
