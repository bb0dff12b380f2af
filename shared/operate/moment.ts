/** Moments as operators write them, in UTC: `15m` and `2d` ago, `14:05`, `yesterday 14:05`, or a time with its zone. */
import * as z from 'zod/mini';
import { time } from '../config/rows/read-row.ts';
import { utcDay } from '../wire/iso-time.ts';

const unitMs: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };
const dayMs = 86_400_000;

export const wantedMoment =
  'how long ago, such as 15m, 1h or 2d, a time of today such as 14:05, or one with its zone';

/** Epoch milliseconds; undefined: it is none. A time of today that is still to come is yesterday's. */
export function momentOf(written: string, nowMs: number): number | undefined {
  const text = written.trim();
  const [, count, unit = ''] = /^(\d{1,5})([mhd])$/.exec(text) ?? [];
  if (count !== undefined) return nowMs - Number(count) * (unitMs[unit] ?? 0);
  const [, yesterday, clock] = /^(yesterday )?(\d\d:\d\d)$/.exec(text) ?? [];
  if (clock !== undefined) {
    const today = Date.parse(`${utcDay(nowMs)}T${clock}:00Z`);
    return Number.isNaN(today) ? undefined : yesterday || today > nowMs ? today - dayMs : today;
  }
  const parsed = z.safeParse(time, text);
  return parsed.success ? parsed.data : undefined;
}
