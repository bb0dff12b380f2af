import type { AccountPlan } from '../../wire/public/account.ts';
import { isHeld, planSlots, type HeldPlan, type SlotQuery } from './plan-slots.ts';

interface PlanFacts extends Omit<SlotQuery, 'model'> {
  /** The account's counts of calls, by slot. */
  counts: ReadonlyMap<string, number>;
}

/** The plan that the account holds at `nowMs`, with its counts; null: it holds none. */
export function accountPlan({ held, counts, plans, nowMs }: PlanFacts): AccountPlan | null {
  if (!isHeld(held, nowMs)) return null;
  return {
    level: held.level,
    until: held.until === undefined ? null : seconds(held.until),
    items: planSlots({ plans, held, nowMs }).map((slot) => ({
      id: slot.itemId,
      name: slot.name,
      used: counts.get(slot.key) ?? 0,
      value: slot.limit ?? -1,
      resets_at: seconds(slot.resetsAtMs),
    })),
  };
}

/** When the plan in the account's row ended, in Unix seconds; null: it did not, or the row has none. */
export const planEndedAt = (held: HeldPlan | undefined, nowMs: number): number | null =>
  held?.until !== undefined && held.until <= nowMs ? seconds(held.until) : null;

const seconds = (milliseconds: number): number => Math.floor(milliseconds / 1000);
