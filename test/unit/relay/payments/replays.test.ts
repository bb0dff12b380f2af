import { expect, test } from 'vitest';
import { deliverPayments } from './payment-deliveries.ts';

test.each([1, 2, 3, 4, 5])(
  'a hundred deliveries in any order, repeated and at once, on a store that fails: each grant exactly once (seed %i)',
  async (seed) => {
    const { granted, wanted, retried, stale, delivered } = await deliverPayments(seed, 100);
    expect(granted).toEqual(wanted);
    expect(delivered).toBeGreaterThanOrEqual(100);
    expect(retried + stale).toBeGreaterThan(0);
  },
);
