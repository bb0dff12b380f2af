import type { PlanSlot } from '../plans/plan-slots.ts';
import type { QuotaItem } from '../quota-item.ts';
import { isRefusal, planReserve, type ReserveNeed } from '../reservation.ts';
import type { PartChange, PartsWrite } from './parts-write.ts';
import { needOn, shareOf, usesPart } from './shares.ts';

/** A plan slot that has room in the account, and the part in which a call finds none. */
export interface MissingRoom {
  images: readonly QuotaItem[];
  to: QuotaItem;
  slot: Pick<PlanSlot, 'key' | 'limit'>;
}

/** A part whose share of the slot is used up, and which has all else that the call needs. */
export function partForRoom(
  need: ReserveNeed,
  images: readonly QuotaItem[],
  { key }: PlanSlot,
): QuotaItem | undefined {
  return images.find((item) => {
    const plan = planReserve(needOn(need, item), {
      ...item,
      plan: new Map([...item.plan, [key, -Infinity]]),
    });
    return usesPart(need, item) && !isRefusal(plan) && plan.slot?.key === key;
  });
}

/**
 * Counts calls of one part in another one, so that the first has room for as many more: half of the room of the part
 * that has the most. The count of a part may so be below zero; their sum stays. Undefined: no other part has room.
 */
export function roomWrite({ images, to, slot }: MissingRoom): PartsWrite | undefined {
  const { key, limit } = slot;
  if (limit === null) return undefined;
  const options = images.map(({ part, parts, plan }) => {
    const share = shareOf(limit, parts, part);
    return { part, parts, share, room: share - (plan.get(key) ?? 0) };
  });
  const [most] = options.filter(({ part }) => part !== to.part).toSorted((a, b) => b.room - a.room);
  if (!most || most.room <= 0) return undefined;
  const calls = Math.ceil(most.room / 2);
  const given = new Map([[key, { calls, countedMax: most.share - calls }]]);
  const taken = new Map([[key, { calls: -calls, countedMax: Infinity }]]);
  const changes: PartChange[] = [
    { part: most.part, seenParts: most.parts, moved: 0n, plan: given },
    { part: to.part, seenParts: to.parts, moved: 0n, plan: taken },
  ];
  return { account: to.account, changes };
}
