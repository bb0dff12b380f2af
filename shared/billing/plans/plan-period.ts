/** One month of a plan, in epoch milliseconds. `startMs` is inclusive, `endMs` exclusive. */
export interface PlanPeriod {
  startMs: number;
  endMs: number;
}

/**
 * The plan month that contains `nowMs`. Plan months are calendar months counted from the plan's first day, in
 * UTC. In a month without that day, the period begins on the month's last day; later periods do not move. A
 * plan from 31 January has periods from 28 (or 29) February and from 31 March.
 */
export function planPeriod(sinceMs: number, nowMs: number): PlanPeriod {
  const since = new Date(sinceMs);
  const now = new Date(nowMs);
  let months = (now.getUTCFullYear() - since.getUTCFullYear()) * 12 + now.getUTCMonth() - since.getUTCMonth();
  if (addMonths(since, months) > nowMs) months -= 1;
  return { startMs: addMonths(since, months), endMs: addMonths(since, months + 1) };
}

export const previousPeriod = (sinceMs: number, period: PlanPeriod): PlanPeriod =>
  planPeriod(sinceMs, period.startMs - 1);

/** The first day of a period, used in the keys of counters: `2026-11-21`. */
export const periodKey = (period: PlanPeriod): string => new Date(period.startMs).toISOString().slice(0, 10);

function addMonths(date: Date, months: number): number {
  const year = date.getUTCFullYear();
  const month = date.getUTCMonth() + months;
  const daysInMonth = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  const time = date.getTime() - Date.UTC(year, date.getUTCMonth(), date.getUTCDate());
  return Date.UTC(year, month, Math.min(date.getUTCDate(), daysInMonth)) + time;
}
