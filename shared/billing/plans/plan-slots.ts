import type { PlanEntry } from '../../wire/public/catalog.ts';
import { periodKey, planPeriod, previousPeriod } from './plan-period.ts';

/** The plan that an account holds. Times in epoch milliseconds. */
export interface HeldPlan {
  level: number;
  since: number;
  until?: number | undefined;
}

/** The counter of a plan entry for the current month. Each call on the plan is counted on one slot. */
export interface PlanSlot {
  itemId: string;
  name: string;
  /**
   * `<item>@<first day of the month>`. The level is not part of it, so counts survive renewals and changes of
   * level.
   */
  key: string;
  /** The counter of two months ago. It is no longer read, so the reserve write removes it. */
  staleKey: string;
  /** Calls per month; null: unlimited, but still counted. */
  limit: number | null;
  resetsAtMs: number;
}

/** Whether the plan is valid at `nowMs`. */
export const isHeld = (held: HeldPlan | undefined, nowMs: number): held is HeldPlan =>
  held !== undefined && held.since <= nowMs && (held.until === undefined || nowMs < held.until);

export interface SlotQuery {
  plans: readonly PlanEntry[];
  held: HeldPlan | undefined;
  nowMs: number;
  /** Only slots that cover this model; absent: all slots. */
  model?: string | undefined;
}

/** The slots of the held plan, in the order of the items in its row. */
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
