/** The days that a report is about, and the days before with which it compares. All in UTC. */
import { usageFailure } from '../operator-failure.ts';
import type { DayRange } from '../sum-reader.ts';
import { utcDay } from '../../wire/iso-time.ts';

export interface ReportPeriod extends DayRange {
  /** `November 2026`, `16 to 22 November 2026`. */
  title: string;
  /** Each day of it, in order. */
  days: string[];
  /** How many of them have come: all, unless it is running. */
  come: number;
  /** As many days from the start of the week or month before, so that a running one is not compared with a whole one. */
  before: DayRange;
  /** Its last day is not over. */
  isRunning: boolean;
}

export interface AskedPeriod {
  /** `2026-11` */
  month?: string | undefined;
  /** A day of the week: `2026-11-18`. Weeks begin on Monday. */
  week?: string | undefined;
}

const dayMs = 86_400_000;
const startOf = (day: string): number => Date.parse(`${day}T00:00:00Z`);
const daysLater = (day: string, days: number): string => utcDay(startOf(day) + days * dayMs);

/** Without a month or a week: the seven days that end today. */
export function reportPeriod(nowMs: number, { month, week }: AskedPeriod): ReportPeriod {
  if (month !== undefined && week !== undefined) throw usageFailure('give --month or --week, not both');
  const today = utcDay(nowMs);
  if (month !== undefined) return monthPeriod(month, today);
  const from = week === undefined ? daysLater(today, -6) : mondayOf(week);
  const to = daysLater(from, 6);
  return periodOf({ from, to, before: { from: daysLater(from, -7), to: daysLater(from, -1) } }, today);
}

function monthPeriod(month: string, today: string): ReportPeriod {
  const from = `${month}-01`;
  if (!/^\d{4}-\d{2}$/.test(month) || !isDay(from))
    throw usageFailure('--month wants a month, such as 2026-11');
  const last = (first: string): string => utcDay(startOf(`${daysLater(first, 31).slice(0, 7)}-01`) - dayMs);
  const lastBefore = daysLater(from, -1);
  const before = { from: `${lastBefore.slice(0, 7)}-01`, to: lastBefore };
  const title = new Intl.DateTimeFormat('en-GB', { month: 'long', year: 'numeric', timeZone: 'UTC' });
  return { ...periodOf({ from, to: last(from), before }, today), title: title.format(startOf(from)) };
}

function mondayOf(day: string): string {
  if (!isDay(day)) throw usageFailure('--week wants a day of the week, such as 2026-11-18');
  const weekday = (new Date(startOf(day)).getUTCDay() + 6) % 7;
  return daysLater(day, -weekday);
}

const isDay = (text: string): boolean =>
  /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(startOf(text)) && utcDay(startOf(text)) === text;

const earlier = (a: string, b: string): string => (a < b ? a : b);

function periodOf(range: DayRange & { before: DayRange }, today: string): ReportPeriod {
  const { from, to } = range;
  if (from > today) throw usageFailure(`${from} has not come yet`);
  const count = Math.round((startOf(to) - startOf(from)) / dayMs) + 1;
  const days = Array.from({ length: count }, (_, index) => daysLater(from, index));
  const words = new Intl.DateTimeFormat('en-GB', {
    day: 'numeric',
    month: 'long',
    year: 'numeric',
    timeZone: 'UTC',
  });
  const come = days.filter((day) => day <= today).length;
  const { before } = range;
  const lastBefore = to < today ? before.to : earlier(before.to, daysLater(before.from, come - 1));
  return {
    from,
    to,
    come,
    before: { from: before.from, to: lastBefore },
    title: words.formatRange(startOf(from), startOf(to)),
    days,
    isRunning: to >= today,
  };
}
