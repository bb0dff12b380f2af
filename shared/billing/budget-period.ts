/** Days and months of the budgets of keys, by the calendar of the relay's time zone. */
import { findClock, utcOf, type CalendarDay } from './wall-clock.ts';

export type BudgetInterval = 'day' | 'month';

export interface BudgetPeriod {
  /** The key of its counter: `2026-11-21`, `2026-11`. */
  key: string;
  resetsAtMs: number;
}

/** @param timeZone a name that Intl knows, such as `Asia/Shanghai` */
export function findBudgetPeriod(interval: BudgetInterval, timeZone: string, nowMs: number): BudgetPeriod {
  const clock = findClock(timeZone);
  const today = clock(nowMs);
  const next =
    interval === 'day' ? { ...today, day: today.day + 1 } : { ...today, month: today.month + 1, day: 1 };
  return {
    key: formatIsoDate(today).slice(0, interval === 'day' ? 10 : 7),
    resetsAtMs: findStartOfDay(
      next,
      clock,
      utcOf(today) + (today.minute - Math.floor(nowMs / minuteMs)) * minuteMs,
    ),
  };
}

const formatIsoDate = (date: CalendarDay): string => new Date(utcOf(date)).toISOString();

/**
 * Finds the first minute of a day in the zone. Usually today's offset from UTC still applies. If clocks change in between, it searches:
 * the day's midnight in UTC is at most 14 hours after it or 12 before. A reading of the clock takes 2 µs; a search needs 11 readings.
 */
function findStartOfDay(date: CalendarDay, clock: ReturnType<typeof findClock>, offsetMs: number): number {
  const midnight = utcOf(date);
  const isReached = (ms: number): boolean => utcOf(clock(ms)) >= midnight;
  const guess = midnight - offsetMs;
  if (isReached(guess) && !isReached(guess - minuteMs)) return guess;
  let before = midnight - 15 * hourMs;
  let reached = midnight + 13 * hourMs;
  while (reached - before > minuteMs) {
    const middle = before + Math.floor((reached - before) / 2 / minuteMs) * minuteMs;
    if (isReached(middle)) reached = middle;
    else before = middle;
  }
  return reached;
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
