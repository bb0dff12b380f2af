import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findBudgetPeriod } from '../../../shared/billing/budget-period.ts';
import { isTimeZone } from '../../../shared/billing/wall-clock.ts';

const at = (time: string): number => Date.parse(time);

describe('the period of a budget', () => {
  it.each([
    ['day', 'UTC', '2026-11-21T23:59:59Z', '2026-11-21', '2026-11-22T00:00:00Z'],
    ['day', 'UTC', '2026-11-22T00:00:00Z', '2026-11-22', '2026-11-23T00:00:00Z'],
    ['month', 'UTC', '2026-12-31T12:00:00Z', '2026-12', '2027-01-01T00:00:00Z'],
    ['day', 'Asia/Shanghai', '2026-11-21T16:00:00Z', '2026-11-22', '2026-11-22T16:00:00Z'],
    ['month', 'Asia/Shanghai', '2026-11-30T16:00:00Z', '2026-12', '2026-12-31T16:00:00Z'],
    ['day', 'Asia/Kathmandu', '2026-11-21T00:00:00Z', '2026-11-21', '2026-11-21T18:15:00Z'],
    ['day', 'Pacific/Kiritimati', '2026-11-21T09:59:00Z', '2026-11-21', '2026-11-21T10:00:00Z'],
    ['day', 'Etc/GMT+12', '2026-11-21T12:00:00Z', '2026-11-21', '2026-11-22T12:00:00Z'],
    ['day', 'America/New_York', '2026-03-08T06:00:00Z', '2026-03-08', '2026-03-09T04:00:00Z'],
    ['day', 'America/New_York', '2026-11-01T05:00:00Z', '2026-11-01', '2026-11-02T05:00:00Z'],
  ] as const)('%s in %s at %s is %s until %s', (interval, zone, now, key, resets) => {
    expect(findBudgetPeriod(interval, zone, at(now))).toEqual({ key, resetsAtMs: at(resets) });
  });

  it('starts the next period at its end, without gaps', () => {
    const zones = fc.constantFrom(
      'UTC',
      'Asia/Shanghai',
      'Africa/Cairo',
      'America/Santiago',
      'Australia/Lord_Howe',
    );
    const times = fc.integer({ min: at('2026-01-01T00:00:00Z'), max: at('2028-01-01T00:00:00Z') });
    fc.assert(
      fc.property(fc.constantFrom('day', 'month'), zones, times, (interval, zone, nowMs) => {
        const { key, resetsAtMs } = findBudgetPeriod(interval, zone, nowMs);
        expect(resetsAtMs).toBeGreaterThan(nowMs);
        expect(findBudgetPeriod(interval, zone, resetsAtMs - 1).key).toBe(key);
        expect(findBudgetPeriod(interval, zone, resetsAtMs).key > key).toBe(true);
      }),
      { numRuns: 50 },
    );
  });
});

it('recognises the name of a time zone', () => {
  expect(['UTC', 'Asia/Shanghai', 'Mars/Olympus', ''].map(isTimeZone)).toEqual([true, true, false, false]);
});
