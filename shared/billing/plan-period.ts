/** One month of a plan, in epoch milliseconds: from `startMs` up to but not including `endMs`. */
export interface PlanPeriod {
  startMs: number;
  endMs: number;
}

/**
 * The month of a plan that a moment falls into: calendar months counted from the plan's first day, in UTC. A month
 * that is too short ends a period early but moves none after it: from the 31st of January periods begin on the
 * 28th (or 29th) of February and on the 31st of March.
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

/** The first day of a period, as counts are keyed by: `2026-11-21`. */
export const periodKey = (period: PlanPeriod): string => new Date(period.startMs).toISOString().slice(0, 10);

function addMonths(date: Date, months: number): number {
  const year = date.getUTCFullYear();
  const month = date.getUTCMonth() + months;
  const daysInMonth = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  const time = date.getTime() - Date.UTC(year, date.getUTCMonth(), date.getUTCDate());
  return Date.UTC(year, month, Math.min(date.getUTCDate(), daysInMonth)) + time;
}
