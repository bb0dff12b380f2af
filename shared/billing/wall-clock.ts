/** Reads the wall clock of a time zone at any moment. */
import { keepNewest } from '../wire/keep-newest.ts';

export interface CalendarDay {
  year: number;
  /** 1 to 12. */
  month: number;
  day: number;
}

export interface WallClock extends CalendarDay {
  /** Minutes since 00:00 on the clock. When clocks go back, the repeated hour has the same minutes twice. */
  minute: number;
}

/** Reads the clock of one zone at a moment. */
type ReadClock = (ms: number) => WallClock;

/** One for each zone in use. Only operators name zones, so there are few. */
const clocks = new Map<string, ReadClock>();
const clocksMax = 100;

/**
 * Finds the function that reads a zone's clock. Creating one takes 60 µs, and each call reads the clock of its price's hours and of its
 * budgets, so clocks are cached. A reading takes 2 µs. Throws a RangeError if Intl does not know the zone.
 * @param timeZone such as `Asia/Shanghai`
 */
export function findClock(timeZone: string): ReadClock {
  const known = clocks.get(timeZone);
  if (known) return known;
  const clock = createClock(timeZone);
  keepNewest(clocks, clocksMax, timeZone, clock);
  return clock;
}

function createClock(timeZone: string): ReadClock {
  const format = new Intl.DateTimeFormat('en', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
  });
  return (ms) => {
    // `11/29/2026, 17:46`: three times as fast as `formatToParts`.
    const [month = 0, day = 0, year = 0, hour = 0, minute = 0] = format.format(ms).split(/\D+/).map(Number);
    return { year, month, day, minute: hour * 60 + minute };
  };
}

export function isTimeZone(name: string): boolean {
  try {
    return name !== '' && findClock(name) !== undefined;
  } catch {
    return false;
  }
}

export const utcOf = ({ year, month, day }: CalendarDay): number => Date.UTC(year, month - 1, day);
