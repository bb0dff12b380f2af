import { describe, expect, it } from 'vitest';
import { planFirstPrices, type TypedPrice } from '../../../shared/operate/prices/first-prices.ts';
import { operatorRig } from '../../support/operator-rig.ts';

const charges = [
  { id: 1, type: 'token-billing', models: ['priced'], input: 0.1, output: 0.2 },
  { id: 2, type: 'non-billing', models: ['gratis', 'priced'] },
];
const prices = async (free: string[], typed: Record<string, TypedPrice>) =>
  planFirstPrices(operatorRig({ rows: { charges } }).ports, {
    models: ['priced', 'gratis', 'new'],
    free,
    typed,
  });

describe('the first prices', () => {
  it('are exactly the requested prices, or nothing is written', async () => {
    const other = { input: 0.1, output: 0.3 };
    await expect(prices([], { priced: other })).rejects.toThrow(
      ': leave out its price here, or change the rule with `charge set',
    );
    await expect(prices([], { gratis: other })).rejects.toThrow('(rule 2)');
    await expect(prices(['priced'], {})).rejects.toThrow('(rule 1)');
    await expect(prices([], { new: { input: 1e-16, output: 0 } })).rejects.toThrow('too small to charge');
    await expect(prices(['new'], { new: other })).rejects.toThrow(
      'new has a price and is also listed as free: choose one',
    );
  });

  it('may be repeated', async () => {
    const plan = await prices(['gratis'], {
      priced: { input: 0.1, output: 0.2 },
      new: { input: 1, output: 2 },
    });
    expect(plan.changes.map((change) => ('row' in change ? change.row['models'] : []))).toContainEqual([
      'new',
    ]);
    expect(plan.unpriced).toEqual([]);
  });
});
