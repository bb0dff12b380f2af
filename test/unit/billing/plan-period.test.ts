import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatPeriodKey, findPlanPeriod, findPreviousPeriod } from '../../../shared/billing/reservation.ts';

const at = (text: string): number => Date.parse(text.length === 10 ? `${text}T00:00:00Z` : text);
const iso = (ms: number): string => new Date(ms).toISOString().replace('T00:00:00.000Z', '');

describe('the month of a plan', () => {
  const cases: [string, string, string, string, string][] = [
    ['starts on the day itself', '2026-03-15', '2026-03-15', '2026-03-15', '2026-04-15'],
    ['ends just before the next', '2026-03-15', '2026-04-14T23:59:59.999Z', '2026-03-15', '2026-04-15'],
    ['turns at its end', '2026-03-15', '2026-04-15', '2026-04-15', '2026-05-15'],
    ['crosses the end of a year', '2025-12-20', '2026-01-05', '2025-12-20', '2026-01-20'],
    ['from the 31st ends with a short month', '2026-01-31', '2026-02-10', '2026-01-31', '2026-02-28'],
    ['from the 31st starts on the last of February', '2026-01-31', '2026-03-01', '2026-02-28', '2026-03-31'],
    ['from the 31st returns to the 31st', '2026-01-31', '2026-04-01', '2026-03-31', '2026-04-30'],
    ['from the 31st in a leap year', '2024-01-31', '2024-03-01', '2024-02-29', '2024-03-31'],
    ['from the 29th in another leap year', '2024-02-29', '2028-02-29', '2028-02-29', '2028-03-29'],
    ['that was 1900 had no leap day', '1899-12-31', '1900-03-01', '1900-02-28', '1900-03-31'],
    ['lies before a first day in the future', '2026-12-10', '2026-11-21', '2026-11-10', '2026-12-10'],
  ];
  it.each(cases)('%s', (_case, since, now, start, end) => {
    const period = findPlanPeriod(at(since), at(now));
    expect([iso(period.startMs), iso(period.endMs)]).toEqual([start, end]);
  });

  it('begins at the time of day at which the plan began', () => {
    const since = at('2026-01-31T15:30:00.250Z');
    const before = findPlanPeriod(since, at('2026-02-28T15:30:00.249Z'));
    const after = findPlanPeriod(since, at('2026-02-28T15:30:00.250Z'));
    expect(iso(before.endMs)).toBe('2026-02-28T15:30:00.250Z');
    expect([formatPeriodKey(before), formatPeriodKey(after)]).toEqual(['2026-01-31', '2026-02-28']);
  });

  it('contains its moment, has the length of a month, and meets its neighbours, whenever it began', () => {
    const moment = fc.integer({ min: at('2000-01-01'), max: at('2100-01-01') });
    const day = 86_400_000;
    fc.assert(
      fc.property(moment, moment, (since, now) => {
        const period = findPlanPeriod(since, now);
        expect(period.startMs <= now && now < period.endMs).toBe(true);
        expect(period.endMs - period.startMs).toBeGreaterThanOrEqual(28 * day);
        expect(period.endMs - period.startMs).toBeLessThanOrEqual(31 * day);
        expect(findPlanPeriod(since, period.endMs).startMs).toBe(period.endMs);
        expect(findPreviousPeriod(since, period).endMs).toBe(period.startMs);
      }),
    );
  });
});
