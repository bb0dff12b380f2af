import { expect, test } from 'vitest';
import { deliverPayments } from './payment-deliveries.ts';

test.each([1, 2, 3, 4, 5])(
  'a hundred repeated, parallel deliveries on a failing store apply each grant exactly once (seed %i)',
  async (seed) => {
    const { granted, wanted, retried, stale, delivered } = await deliverPayments(seed, 100);
    expect(granted).toEqual(wanted);
    expect(delivered).toBeGreaterThanOrEqual(100);
    expect(retried + stale).toBeGreaterThan(0);
  },
);
