import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { grantShares } from '../../../shared/billing/parts/grant-shares.ts';

describe('a grant to an account in parts', () => {
  it.each([
    ['evenly', 40n, [0n, 10n, 5n, 0n], [10n, 10n, 10n, 10n]],
    ['to the debts of parts first', 30n, [-50n, 10n], [30n, 0n]],
    ['evenly with what debts leave', 70n, [-50n, 10n], [60n, 10n]],
    ['from each in proportion, if it is negative', -30n, [10n, 20n, 0n], [-10n, -20n, 0n]],
    ['to part 0 where nothing can be taken', -30n, [0n, -5n], [-30n, 0n]],
  ])('is shared out %s', (_case, amount, available, shares) => {
    expect(grantShares(amount, available)).toEqual(shares);
  });

  it('is whole, and lets no part spend what another one owes', () => {
    const available = fc.array(fc.bigInt({ min: -100n, max: 100n }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(fc.bigInt({ min: -500n, max: 500n }), available, (amount, parts) => {
        const shares = grantShares(amount, parts);
        expect(shares.reduce((sum, share) => sum + share, 0n)).toBe(amount);
        const owed = parts.some((part, at) => part + (shares[at] ?? 0n) < 0n);
        if (owed && amount > 0n)
          expect(shares.every((share, at) => share === 0n || (parts[at] ?? 0n) < 0n || at === 0)).toBe(true);
      }),
    );
  });
});
