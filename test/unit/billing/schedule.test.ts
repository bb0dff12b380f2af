/** Compares windows with an independent reading of the zone's clock: minute by minute, from its offsets. */
import { describe, expect, it } from 'vitest';
import {
  doOverlap,
  findNextChange,
  findOpenWindow,
  listChanges,
  weekdays,
  type HourWindow,
} from '../../../shared/billing/schedule.ts';

const hourMs = 3_600_000;
const at = (text: string): number => Date.parse(text);
const peak = (more: Partial<HourWindow> = {}): HourWindow => ({
  name: 'peak',
  from: '09:00',
  to: '12:00',
  zone: 'Asia/Shanghai',
  ...more,
});
const openAt = (windows: HourWindow[], text: string): string | undefined =>
  findOpenWindow(windows, at(text))?.name;

describe('a window', () => {
  it.each<[string, Partial<HourWindow>, string, boolean]>([
    ['begins with its first minute', {}, '2026-11-30T01:00:00Z', true],
    ['is closed before', {}, '2026-11-30T00:59:59.999Z', false],
    ['is open to its last millisecond', {}, '2026-11-30T03:59:59.999Z', true],
    ['ends with the minute that it names', {}, '2026-11-30T04:00:00Z', false],
    ['is open on the weekdays of its zone', { days: ['mon'], from: '00:00' }, '2026-11-29T16:00:00Z', true],
    ['is closed on others', { days: ['mon'], from: '00:00' }, '2026-11-29T15:59:00Z', false],
    ['over midnight is open before it', { from: '22:00', to: '06:00' }, '2026-11-29T14:00:00Z', true],
    ['over midnight is open after it', { from: '22:00', to: '06:00' }, '2026-11-29T21:59:00Z', true],
    ['over midnight ends', { from: '22:00', to: '06:00' }, '2026-11-29T22:00:00Z', false],
    [
      'over midnight belongs to the day on which it begins',
      { from: '22:00', to: '06:00', days: ['fri'] },
      '2026-12-04T20:00:00Z',
      true,
    ],
    [
      'over midnight does not begin on the day on which it ends',
      { from: '22:00', to: '06:00', days: ['fri'] },
      '2026-12-03T20:00:00Z',
      false,
    ],
    [
      'of equal ends lasts 24 hours',
      { from: '09:00', to: '09:00', days: ['mon'] },
      '2026-12-01T00:59:00Z',
      true,
    ],
    [
      'of equal ends is over then',
      { from: '09:00', to: '09:00', days: ['mon'] },
      '2026-12-01T01:00:00Z',
      false,
    ],
    [
      'to 24:00 is open in the last minute of the day',
      { from: '18:00', to: '24:00' },
      '2026-11-30T15:59:00Z',
      true,
    ],
    ['does not begin on a day off', { except: ['2026-10-01'] }, '2026-10-01T02:00:00Z', false],
    ['begins the day after one', { except: ['2026-10-01'] }, '2026-10-02T02:00:00Z', true],
    [
      'that began before a day off goes on over midnight',
      { from: '22:00', to: '06:00', except: ['2026-10-01'] },
      '2026-09-30T20:00:00Z',
      true,
    ],
    ['may be off on a leap day', { except: ['2028-02-29'] }, '2028-02-29T02:00:00Z', false],
    ['is open on other leap days', { except: ['2028-02-29'] }, '2032-02-29T02:00:00Z', true],
  ])('%s', (_what, more, text, isOpen) => {
    expect(openAt([peak(more)], text)).toBe(isOpen ? 'peak' : undefined);
  });

  it('is open twice in a repeated hour, and never in a skipped one', () => {
    const night = peak({ from: '02:00', to: '03:00', zone: 'Europe/Berlin' });
    const hours = (day: string) =>
      Array.from({ length: 24 }, (_, hour) => at(day) + hour * hourMs).filter((ms) =>
        findOpenWindow([night], ms),
      );
    expect(hours('2026-10-25')).toEqual([at('2026-10-25T00:00Z'), at('2026-10-25T01:00Z')]);
    expect(hours('2026-03-29')).toEqual([]);
    expect(hours('2026-03-30')).toEqual([at('2026-03-30T00:00Z')]);
  });
});

/** The clock changes of a zone by the tz database: the time, and the minutes ahead of UTC from then on. */
const offsets: Record<string, [string, number][]> = {
  'Europe/Berlin': [
    ['2027-01-01T00:00Z', 60],
    ['2027-03-28T01:00Z', 120],
    ['2027-10-31T01:00Z', 60],
    ['2028-03-26T01:00Z', 120],
    ['2028-10-29T01:00Z', 60],
  ],
  'America/New_York': [
    ['2027-01-01T00:00Z', -300],
    ['2027-03-14T07:00Z', -240],
    ['2027-11-07T06:00Z', -300],
    ['2028-03-12T07:00Z', -240],
    ['2028-11-05T06:00Z', -300],
  ],
  'Asia/Shanghai': [['2027-01-01T00:00Z', 480]],
};

/** Shifts UTC, while the product asks Intl. */
function isOpenByOffset({ days, from, to, zone, except = [] }: HourWindow, ms: number): boolean {
  const [, offset] = (offsets[zone] ?? []).findLast(([since]) => at(since) <= ms) ?? ['', 0];
  const local = new Date(ms + offset * 60_000).toISOString();
  const time = local.slice(11, 16);
  const begins = (text: string): boolean => {
    const name = new Date(text).toUTCString().slice(0, 3).toLowerCase();
    return !except.includes(text) && (days ?? weekdays).some((day) => day === name);
  };
  const today = local.slice(0, 10);
  const yesterday = new Date(at(today) - 24 * hourMs).toISOString().slice(0, 10);
  if (from < to) return from <= time && time < to && begins(today);
  return (from <= time && begins(today)) || (time < to && begins(yesterday));
}

describe('every hour of a leap year, in zones with and without clock changes', () => {
  const workdays = ['mon', 'tue', 'wed', 'thu', 'fri'] as const;
  const of = (zone: string): HourWindow[] => [
    peak({ zone, days: workdays, except: ['2028-02-29', '2028-05-01'] }),
    peak({ name: 'late', zone, days: workdays, from: '14:00', to: '18:00' }),
    peak({ name: 'night', zone, days: ['fri', 'sat'], from: '23:00', to: '03:00', except: ['2028-12-29'] }),
  ];
  const start = at('2028-01-01T00:00Z');
  const times = Array.from({ length: 366 * 24 }, (_, hour) => start + hour * hourMs);

  it.each(Object.keys(offsets))('follows the offsets in %s', { timeout: 60_000 }, (zone) => {
    const windows = of(zone);
    const names = times.map((ms) => findOpenWindow(windows, ms)?.name);
    const wanted = times.map((ms) => windows.find((hours) => isOpenByOffset(hours, ms))?.name);
    expect(names).toEqual(wanted);
    expect(names.filter((name) => name === 'peak').length).toBeGreaterThan(700);
    // Each change is where the previous one announced it.
    const changes = times.filter((_, index) => index > 0 && wanted[index] !== wanted[index - 1]);
    const announced = changes.slice(0, -1).map((ms) => findNextChange(windows, ms));
    expect(announced).toEqual(changes.slice(1));
  });

  it('changes as often in a week as windows begin and end', () => {
    expect(listChanges([of('Asia/Shanghai')], at('2028-01-03T00:00Z'))).toHaveLength(1 + 24);
  });
});

it('a window that never opens again has no next change, and neither has an empty list', () => {
  expect(findNextChange([], 0)).toBeUndefined();
  expect(findNextChange([peak({ from: '00:00', to: '24:00' })], 0)).toBeUndefined();
});

it.each<[string, HourWindow[], boolean]>([
  ['apart', [peak(), peak({ from: '12:00', to: '14:00' })], false],
  ['in a minute', [peak(), peak({ from: '11:59', to: '14:00' })], true],
  ['on other days', [peak({ days: ['mon'] }), peak({ days: ['tue'] })], false],
  [
    'over midnight',
    [peak({ from: '22:00', to: '06:00', days: ['mon'] }), peak({ from: '05:00', to: '07:00' })],
    true,
  ],
  [
    'over the end of the week',
    [
      peak({ from: '22:00', to: '06:00', days: ['sun'] }),
      peak({ from: '00:00', to: '01:00', days: ['mon'] }),
    ],
    true,
  ],
  ['with itself', [peak({ from: '09:00', to: '09:00' })], false],
  [
    'for 24 hours from day to day',
    [peak({ from: '09:00', to: '09:00' }), peak({ from: '08:00', to: '08:30' })],
    true,
  ],
])('windows overlap %s', (_how, windows, does) => {
  expect(doOverlap(windows)).toBe(does);
});
