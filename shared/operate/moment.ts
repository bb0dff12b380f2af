/**
 * Moments as operators write them, in UTC: how long ago or ahead (`15m`, `2h`, `7d`), a time (`14:05`), a day (`yesterday`, `tomorrow 14:05`,
 * `next monday`), or ISO 8601. The one dialect of the command line and the console; tables and files have ISO 8601 alone.
 */
import * as z from 'zod/mini';
import { time } from '../config/rows/read-row.ts';
import { isoTime, utcDay, dayMs } from '../wire/iso-time.ts';
import { isRecord } from '../wire/json.ts';
import { usageFailure } from './plan.ts';

/** Decides whether an ambiguous moment such as `2h`, `14:05` or `monday` is in the past or the future. */
export type Towards = 'past' | 'future';

const unitMs: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };
const weekdays = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'];
const near: Readonly<Record<string, number>> = { yesterday: -1, today: 0, tomorrow: 1 };

export const wantedMoment =
  'a time such as 2h, 14:05, yesterday 14:05, next monday or 2026-11-30T14:05:00Z (UTC by default)';

/** Epoch milliseconds; undefined: it is none. */
export function momentOf(written: string, nowMs: number, towards: Towards): number | undefined {
  const text = written.trim().toLowerCase().replaceAll(/\s+/g, ' ');
  if (text === 'now') return nowMs;
  const ahead = towards === 'future' ? 1 : -1;
  const [, count, unit = ''] = /^(\d{1,5})([mhdw])$/.exec(text) ?? [];
  if (count !== undefined) return nowMs + ahead * Number(count) * (unitMs[unit] ?? 0);
  const [, day, clock] = /^([a-z]+(?: [a-z]+)?)?(?:(?:^| )(\d\d:\d\d))?$/.exec(text) ?? [];
  if (day === undefined && clock === undefined) return parseIsoMoment(written);
  const today = Date.parse(utcDay(nowMs));
  const startMs = Date.parse(`1970-01-01T${clock ?? '00:00'}Z`);
  if (day !== undefined) {
    const days = countDaysTo(day, new Date(nowMs).getUTCDay(), ahead);
    return days === undefined || Number.isNaN(startMs) ? undefined : today + days * dayMs + startMs;
  }
  if (Number.isNaN(startMs)) return undefined;
  const atMs = today + startMs;
  if (towards === 'past') return atMs > nowMs ? atMs - dayMs : atMs;
  return atMs > nowMs ? atMs : atMs + dayMs;
}

/** `monday` is never today: of today one says `today`. */
function countDaysTo(text: string, weekday: number, ahead: number): number | undefined {
  if (Object.hasOwn(near, text)) return near[text];
  const [, which, name = ''] = /^(?:(next|last) )?([a-z]+)$/.exec(text) ?? [];
  const wanted = weekdays.indexOf(name);
  if (wanted < 0) return undefined;
  const isNext = which === undefined ? ahead > 0 : which === 'next';
  return isNext ? (wanted - weekday + 7) % 7 || 7 : -((weekday - wanted + 7) % 7 || 7);
}

/** A time without a zone is one of UTC. */
function parseIsoMoment(written: string): number | undefined {
  const text = written.trim();
  const zoned = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$/.test(text) ? `${text}Z` : text;
  const parsed = z.safeParse(time, zoned);
  return parsed.success ? parsed.data : undefined;
}

/** Attributes of rows that are times, and what one means who writes `2h`. */
const towardsOf: Readonly<Record<string, Towards>> = {
  since: 'past',
  from: 'future',
  until: 'future',
  expires_at: 'future',
};

/** A time as a row has it: ISO 8601 stays as it was written, and so does what is no time. */
export function normalizeMoment(written: string, nowMs: number, towards: Towards = 'future'): string {
  if (z.safeParse(time, written).success) return written;
  const ms = momentOf(written, nowMs, towards);
  return ms === undefined ? written : isoTime(ms);
}

/** Formats a time of a row for people: a date means 00:00 UTC. Undefined if the attribute or its value is not a time. */
export function formatStoredMoment(path: string, value: unknown): string | undefined {
  const parsed = Object.hasOwn(towardsOf, path.replace(/^.*\./, '')) ? z.safeParse(time, value) : undefined;
  return parsed?.success ? isoTime(parsed.data) : undefined;
}

/** Converts all times in typed attributes to the form of rows. Throws a usage failure for an invalid time. */
export const normalizeMoments = <Value>(value: Value, nowMs: number): Value =>
  normalizeMomentsAt(value, nowMs, '') as Value;

function normalizeMomentsAt(value: unknown, nowMs: number, path: string): unknown {
  if (Array.isArray(value)) return value.map((each, at) => normalizeMomentsAt(each, nowMs, `${path}[${at}]`));
  if (!isRecord(value) || value.constructor !== Object) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => {
      const where = path === '' ? name : `${path}.${name}`;
      const towards = Object.hasOwn(towardsOf, name) ? towardsOf[name] : undefined;
      if (towards === undefined || typeof each !== 'string')
        // Leave `params`, which belong to the upstream, and `windows`, which hold times of day.
        return [
          name,
          where === 'params' || name === 'windows' ? each : normalizeMomentsAt(each, nowMs, where),
        ];
      const stored = normalizeMoment(each, nowMs, towards);
      if (!z.safeParse(time, stored).success)
        throw usageFailure(`${where}: invalid time ${JSON.stringify(each)}, expected ${wantedMoment}`);
      return [name, stored];
    }),
  );
}
