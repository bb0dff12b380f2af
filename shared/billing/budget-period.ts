export type BudgetInterval = 'day' | 'month';

/** The day or month of a budget, by the calendar of the relay's time zone. */
export interface BudgetPeriod {
  /** The key of its counter: `2026-11-21`, `2026-11`. */
  key: string;
  resetsAtMs: number;
}

interface CalendarDay {
  year: number;
  /** 1 to 12. */
  month: number;
  day: number;
}

/** @param timeZone a name that Intl knows, such as `Asia/Shanghai` */
export function findBudgetPeriod(interval: BudgetInterval, timeZone: string, nowMs: number): BudgetPeriod {
  const calendar = calendarOf(timeZone);
  const today = dayIn(calendar, nowMs);
  const next =
    interval === 'day' ? { ...today, day: today.day + 1 } : { ...today, month: today.month + 1, day: 1 };
  return {
    key: isoDate(today).slice(0, interval === 'day' ? 10 : 7),
    resetsAtMs: startOf(next, calendar),
  };
}

export function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}

/** Slow to make, so made once for all days that are asked for. */
const calendarOf = (timeZone: string): Intl.DateTimeFormat =>
  new Intl.DateTimeFormat('en', { timeZone, year: 'numeric', month: 'numeric', day: 'numeric' });

function dayIn(calendar: Intl.DateTimeFormat, ms: number): CalendarDay {
  const parts = new Map(calendar.formatToParts(ms).map(({ type, value }) => [type, Number(value)]));
  return { year: parts.get('year') ?? 0, month: parts.get('month') ?? 0, day: parts.get('day') ?? 0 };
}

const utcOf = ({ year, month, day }: CalendarDay): number => Date.UTC(year, month - 1, day);
const isoDate = (date: CalendarDay): string => new Date(utcOf(date)).toISOString();

/**
 * The first moment of a day in the zone, to the minute: the day's midnight in UTC is at most 14 hours after or 12
 * before it. The search needs no table of offsets, and is right on days on which clocks change.
 */
function startOf(date: CalendarDay, calendar: Intl.DateTimeFormat): number {
  const midnight = utcOf(date);
  const isReached = (ms: number): boolean => utcOf(dayIn(calendar, ms)) >= midnight;
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
