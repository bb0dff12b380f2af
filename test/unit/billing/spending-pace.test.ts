import { describe, expect, it } from 'vitest';
import {
  estimateDaysLeft,
  listPaceMonths,
  computeSpendingPace,
} from '../../../shared/billing/spending-pace.ts';

const yuan = 1_000_000_000n;

const month = (charged: bigint, firstDay?: string, metered = 0n) => ({
  figures: { counts: {}, amounts: { charged, metered } },
  firstDay,
});

describe('the days that a balance lasts', () => {
  const noon = (day: string): number => Date.parse(`${day}T12:00:00Z`);

  it.each([
    ['of an old account counts this month', '2026-11-21', 100n, [month(10n * yuan, '2026-11-01')], 20.5],
    ['for an account from today uses only today', '2026-11-21', 10n, [month(10n * yuan, '2026-11-21')], 1],
    [
      'of one that began this month is from its first call on',
      '2026-11-21',
      10n,
      [month(10n * yuan, '2026-11-11')],
      10.5,
    ],
    [
      'of one that began last month is from its first call on, in the first week',
      '2026-12-02',
      10n,
      [month(4n * yuan, '2026-12-01'), month(6n * yuan, '2026-11-23')],
      9.5,
    ],
    [
      'for an old account in the first week includes the month before',
      '2026-12-02',
      100n,
      [month(10n * yuan)],
      31.5,
    ],
    [
      'for a new account without sums of its first day uses the month',
      '2026-11-21',
      10n,
      [month(10n * yuan)],
      20.5,
    ],
    // Sums follow a close within seconds.
    [
      'for a new account whose last call is not yet summed',
      '2026-11-21',
      10n,
      [month(9n * yuan + 950_000_000n, '2026-11-21')],
      1,
    ],
  ])('%s', (_name, day, spent, months, days) => {
    const account = { available: 100n * yuan, spent: spent * yuan };
    const pace = computeSpendingPace(account, months, noon(day));
    expect(pace.days).toBeCloseTo(days, 9);
    expect(estimateDaysLeft(account, pace)).toBeCloseTo((100 * days) / (Number(pace.paid) / 1e9), 6);
  });

  it('are unknown without spending, and 0 for an empty balance', () => {
    const account = { available: -5n * yuan, spent: 3n * yuan, metered: 3n * yuan };
    const atNoon = noon('2026-11-21');
    expect(estimateDaysLeft(account, computeSpendingPace(account, [], atNoon))).toBeUndefined();
    const metered = computeSpendingPace(account, [month(3n * yuan, '2026-11-21', 3n * yuan)], atNoon);
    expect(estimateDaysLeft(account, metered)).toBeUndefined();
    expect(estimateDaysLeft(account, computeSpendingPace(account, [month(yuan)], atNoon))).toBe(0);
  });

  it('are estimated from the month before only in the first week', () => {
    expect(listPaceMonths(Date.parse('2026-03-01T00:00:00Z'))).toEqual(['2026-03', '2026-02']);
    expect(listPaceMonths(Date.parse('2026-01-07T23:59:59Z'))).toEqual(['2026-01', '2025-12']);
    expect(listPaceMonths(Date.parse('2026-01-08T00:00:00Z'))).toEqual(['2026-01']);
  });
});
