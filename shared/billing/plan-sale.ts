/**
 * Sells plans by the month: computes the plan that a payment adds to an account's row, and the plan after a full refund. A month of the
 * same level follows the paid time; a higher level starts at once and ends the lower one.
 */
import { addMonths, findPlanPeriod, isSubscribed, type Subscription } from './reservation.ts';

/** The time that a payment bought. */
export interface BoughtMonth {
  from: number;
  until: number;
}

/** Returns the reason as a text if the current plan has no end or a higher level. */
export function buyMonth(
  current: Subscription | undefined,
  level: number,
  nowMs: number,
): { plan: Subscription; bought: BoughtMonth } | string {
  // Also one that begins later: another clock may be ahead.
  if (current && (current.until ?? Infinity) > nowMs) {
    const { since, until } = current;
    if (until === undefined) return 'the account has a plan without an end';
    if (current.level > level) return 'the account has a higher plan';
    if (current.level === level) {
      const period = findPlanPeriod(since, until);
      // An operator may have set an end in the middle of a plan month.
      const next = period.startMs === until ? period.endMs : addMonths(new Date(until), 1);
      return { plan: { level, since, until: next }, bought: { from: until, until: next } };
    }
  }
  const until = addMonths(new Date(nowMs), 1);
  return { plan: { level, since: nowMs, until }, bought: { from: nowMs, until } };
}

/** Returns undefined if nothing is left of the month. */
export function returnMonth(
  current: Subscription | undefined,
  { level, bought, nowMs }: { level: number; bought: BoughtMonth; nowMs: number },
): Subscription | undefined {
  if (bought.until <= nowMs) return undefined;
  if (!current?.until || current.level !== level || !isSubscribed(current, nowMs)) return undefined;
  return { ...current, until: Math.max(nowMs, current.until - (bought.until - bought.from)) };
}
