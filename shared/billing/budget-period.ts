/** Days and months of the budgets of keys, by the calendar of the relay's time zone. */
export type BudgetInterval = 'day' | 'month';

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
  const calendar = createCalendar(timeZone);
  const today = findDay(calendar, nowMs);
  const next =
    interval === 'day' ? { ...today, day: today.day + 1 } : { ...today, month: today.month + 1, day: 1 };
  return {
    key: formatIsoDate(today).slice(0, interval === 'day' ? 10 : 7),
    resetsAtMs: findStartOfDay(next, calendar),
  };
}

export function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}

/** Intl takes long to create a format, so all days of one period share it. */
const createCalendar = (timeZone: string): Intl.DateTimeFormat =>
  new Intl.DateTimeFormat('en', { timeZone, year: 'numeric', month: 'numeric', day: 'numeric' });

function findDay(calendar: Intl.DateTimeFormat, ms: number): CalendarDay {
  const fields = new Map(calendar.formatToParts(ms).map(({ type, value }) => [type, Number(value)]));
  return { year: fields.get('year') ?? 0, month: fields.get('month') ?? 0, day: fields.get('day') ?? 0 };
}

const utcOf = ({ year, month, day }: CalendarDay): number => Date.UTC(year, month - 1, day);
const formatIsoDate = (date: CalendarDay): string => new Date(utcOf(date)).toISOString();

/**
 * Searches the first minute of a day in the zone: the day's midnight in UTC is at most 14 hours after it or 12 before. A search
 * needs no table of offsets, and is right on days on which clocks change.
 */
function findStartOfDay(date: CalendarDay, calendar: Intl.DateTimeFormat): number {
  const midnight = utcOf(date);
  const isReached = (ms: number): boolean => utcOf(findDay(calendar, ms)) >= midnight;
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
