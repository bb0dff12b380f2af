/** Finds which weekly window of hours is open at a time, by the clocks of the windows' time zone, and when that changes. */
import { findClock, utcOf, type WallClock } from './wall-clock.ts';

export const weekdays = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;
export type Weekday = (typeof weekdays)[number];

export interface HourWindow {
  name: string;
  /** The days on which it begins, by default all. A window over midnight begins on the day before. */
  days?: readonly Weekday[] | undefined;
  /** `from`, such as `09:00`, is the first minute, `to` the first one after the window, on the next day unless `to` is later. */
  from: string;
  to: string;
  zone: string;
  /** Days on which it does not begin, such as `2026-10-01`. */
  except?: readonly string[] | undefined;
}

/** Expects windows in one time zone that never overlap. */
export function findOpenWindow<Hours extends HourWindow>(
  windows: readonly Hours[] | undefined,
  atMs: number,
): Hours | undefined {
  const [first] = windows ?? [];
  return first && findOpen(windows ?? [], findClock(first.zone)(atMs));
}

const findOpen = <Hours extends HourWindow>(windows: readonly Hours[], clock: WallClock): Hours | undefined =>
  windows.find((hours) => isOpen(hours, clock));

function isOpen(hours: HourWindow, clock: WallClock): boolean {
  const [from, to] = [minuteOf(hours.from), minuteOf(hours.to)];
  const { minute } = clock;
  const today = Math.floor(utcOf(clock) / dayMs);
  if (from < to) return from <= minute && minute < to && beginsOn(hours, today);
  return (from <= minute && beginsOn(hours, today)) || (minute < to && beginsOn(hours, today - 1));
}

/** @param day days since 1970-01-01, a Thursday */
function beginsOn({ days = weekdays, except = [] }: HourWindow, day: number): boolean {
  const weekday = weekdays[(day + 3) % 7];
  return (
    weekday !== undefined &&
    days.includes(weekday) &&
    !except.includes(new Date(day * dayMs).toISOString().slice(0, 10))
  );
}

/** `24:00` is the end of a day. */
export const minuteOf = (time: string): number => Number(time.slice(0, 2)) * 60 + Number(time.slice(3));

/** True if two windows share a minute of the week. Ignores days off, which only take windows away. */
export function doOverlap(windows: readonly HourWindow[]): boolean {
  const spans = windows.flatMap(({ days = weekdays, ...hours }) => {
    const [from, to] = [minuteOf(hours.from), minuteOf(hours.to)];
    return days.map((day) => {
      const start = weekdays.indexOf(day) * dayMinutes + from;
      return { start, end: start + (from < to ? to - from : to + dayMinutes - from) };
    });
  });
  const week = 7 * dayMinutes;
  // Split a window that runs past Sunday: its rest is on Monday.
  const all = spans.flatMap(({ start, end }) =>
    end > week
      ? [
          { start, end: week },
          { start: 0, end: end - week },
        ]
      : [{ start, end }],
  );
  const ordered = all.toSorted((a, b) => a.start - b.start);
  return ordered.some(({ end }, at) => end > (ordered[at + 1]?.start ?? Infinity));
}

/** Finds when a window opens or closes next. Undefined if none does within `lookedDays`. */
export function findNextChange(windows: readonly HourWindow[], nowMs: number): number | undefined {
  const [zoned] = windows;
  if (!zoned) return undefined;
  const clock = findClock(zoned.zone);
  const findAt = (ms: number): HourWindow | undefined => findOpen(windows, clock(ms));
  const edges = windows.flatMap(({ from, to }) => [minuteOf(from), minuteOf(to)]);
  const first = findAt(nowMs);
  let before = Math.floor(nowMs / minuteMs) * minuteMs;
  while (before < nowMs + lookedDays * dayMs) {
    const { minute } = clock(before);
    const step = Math.min(...edges.map((edge) => (edge - minute + dayMinutes) % dayMinutes || dayMinutes));
    const next = before + step * minuteMs;
    // If the clocks change on the way, the edge is at another distance, so walk on minute by minute.
    const isThere = clock(next).minute === (minute + step) % dayMinutes;
    before = isThere ? next : before + minuteMs;
    if (findAt(before) !== first) return before;
  }
  return undefined;
}

/** Lists now and each moment of the next 7 days at which a window of one of the schedules opens or closes. */
export const listChanges = (schedules: readonly (readonly HourWindow[])[], nowMs: number): number[] => [
  nowMs,
  ...schedules.flatMap((windows) => listOwnChanges(windows, nowMs)),
];

function listOwnChanges(windows: readonly HourWindow[], nowMs: number): number[] {
  const found: number[] = [];
  for (;;) {
    const next = findNextChange(windows, found.at(-1) ?? nowMs);
    if (next === undefined || next > nowMs + 7 * dayMs) return found;
    found.push(next);
  }
}

/** `mon tue 09:00-12:00 Asia/Shanghai` */
export const formatHours = ({ days, from, to, zone }: HourWindow): string =>
  [...(days ?? []), `${from}-${to}`, zone].join(' ');

const minuteMs = 60_000;
const dayMinutes = 24 * 60;
const dayMs = dayMinutes * minuteMs;
/** Longer than any run of days off. */
const lookedDays = 60;
