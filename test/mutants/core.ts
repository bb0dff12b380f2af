import type { Mutants } from './mutant.ts';

/** Of what is computed without a store: amounts, prices, rows, what clients speak. */
export const core: Mutants = {
  'money is rounded down': {
    file: 'shared/billing/price.ts',
    find: '(value + divisor / 2n) / divisor',
    replace: 'value / divisor',
    noticed: 'test/unit/billing/amount.test.ts',
    by: /is rounded half up/,
  },
};
