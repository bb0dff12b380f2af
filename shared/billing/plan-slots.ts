import type { PlanEntry } from '../wire/catalog.ts';
import { periodKey, planPeriod, previousPeriod } from './plan-period.ts';

/** The plan that an account holds. Times in epoch milliseconds. */
export interface HeldPlan {
  level: number;
  since: number;
  until?: number | undefined;
}

/** A plan entry's counter for the current month. A call that the plan covers is counted on one. */
export interface PlanSlot {
  itemId: string;
  name: string;
  /** `<item>@<first day of the month>`: an item's count survives renewals and changes of level. */
  key: string;
  /** The counter of two months ago, to be removed: nothing reads it any more. */
  staleKey: string;
  /** Calls a month; null: unlimited, but counted. */
  limit: number | null;
  resetsAtMs: number;
}

/** Whether a plan is held now. */
export const isHeld = (held: HeldPlan | undefined, nowMs: number): held is HeldPlan =>
  held !== undefined && held.since <= nowMs && (held.until === undefined || nowMs < held.until);

export interface SlotQuery {
  plans: readonly PlanEntry[];
  held: HeldPlan | undefined;
  nowMs: number;
  /** Absent: the slots of all models. */
  model?: string | undefined;
}

/** The counters that the held plan offers, in row order. */
export function planSlots({ plans, held, nowMs, model }: SlotQuery): PlanSlot[] {
  if (!isHeld(held, nowMs)) return [];
  const plan = plans.find(({ level }) => level === held.level);
  const period = planPeriod(held.since, nowMs);
  const stale = previousPeriod(held.since, previousPeriod(held.since, period));
  return (plan?.items ?? [])
    .filter((item) => model === undefined || item.models.includes(model))
    .map((item) => ({
      itemId: item.id,
      name: item.name === '' ? item.id : item.name,
      key: `${item.id}@${periodKey(period)}`,
      staleKey: `${item.id}@${periodKey(stale)}`,
      limit: item.value < 0 ? null : item.value,
      resetsAtMs: period.endMs,
    }));
}
