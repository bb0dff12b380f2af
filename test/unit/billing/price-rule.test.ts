import { describe, expect, it } from 'vitest';
import { pricedModels, priceOf, ruleLimits, ruleOf, type PriceRule } from '../../../shared/billing/price.ts';
import { tokenPriceOf } from '../../support/prices.ts';

const december = Date.UTC(2026, 11, 1);
const january = Date.UTC(2027, 0, 1);
const named = (id: number, from?: number, models = ['m']) => ({ id, from, models });

describe('the rule that prices a model at a time', () => {
  const charges = [named(1), named(2, january), named(3, december), named(4, december), named(5)];
  it.each([
    [december - 1, 1],
    [december, 3],
    [january - 1, 3],
    [january, 2],
    [january + 1e12, 2],
  ])('is at %d rule %d: the latest that is in force, then the lowest id', (nowMs, id) => {
    expect(ruleOf(charges, 'm', nowMs)?.id).toBe(id);
  });

  it('is none before the first comes into force, and none that does not name it', () => {
    expect(ruleOf([named(1, january)], 'm', january - 1)).toBeUndefined();
    expect(ruleOf([named(1, 0, ['other'])], 'm', january)).toBeUndefined();
    expect(pricedModels([named(1, january), named(2, december, ['n'])], december)).toEqual(new Set(['n']));
  });

  it('gives its price and its limits, not those of a rule that it replaced', () => {
    const rule: PriceRule = {
      id: 1,
      type: 'token-billing',
      models: ['m'],
      input: 1,
      output: 2,
      anonymous: false,
    };
    const dated = { ...rule, id: 2, from: december, input: 3, image_tokens: 800, input_factor: 1.5 };
    const both = [{ ...rule, max_output_tokens: 9, default_output_tokens: 5 }, dated];
    expect(priceOf(both, 'm', december)).toEqual(tokenPriceOf(3_000_000_000_000n, 2_000_000_000_000n, 2));
    expect(ruleLimits(both, 'm', december)).toEqual({ imageTokens: 800, inputFactor: 1.5 });
    expect(ruleLimits(both, 'm', december - 1)).toEqual({
      maxOutputTokens: 9,
      defaultOutputTokens: 5,
      inputFactor: 1,
    });
    expect(ruleLimits([], 'm', december)).toEqual({ inputFactor: 1 });
  });
});
