import { describe, expect, it } from 'vitest';
import { boughtOf } from '../../../shared/billing/price.ts';

const used = {
  prompt_tokens: 3_000,
  completion_tokens: 1_000,
  prompt_tokens_details: { cached_tokens: 2_000 },
};

describe('what a call cost the operator', () => {
  it('follows from the prices of the model at the upstream, with its cache and its tiers', () => {
    const cost = {
      a: { input: 0.01, output: 0.02, cached_input: 0.001 },
      b: { input: 0.01, output: 0.02, tiers: [{ above: 2_999, input: 0.1, output: 0.2 }] },
    };
    expect(boughtOf(cost, 'a', used)).toBe(32_000_000n);
    expect(boughtOf(cost, 'b', used)).toBe(500_000_000n);
  });

  it('is that of * for models without prices of their own, and unknown where there is none', () => {
    const cost = { a: { input: 0, output: 0 }, '*': { input: 0.01, output: 0.02 } };
    expect(boughtOf(cost, 'a', used)).toBe(0n);
    expect(boughtOf(cost, 'b', used)).toBe(50_000_000n);
    expect(boughtOf({ a: cost.a }, 'constructor', used)).toBeUndefined();
    expect(boughtOf(undefined, 'a', used)).toBeUndefined();
  });

  it('is in yuan, by the rate of the row, rounded once', () => {
    const dollars = { input: 0.000_15, output: 0.000_6, currency: 'USD', rate: 7.123_456 };
    // (3 x 0.00015 + 0.0006) x 7.123456 = 0.0074796288
    expect(boughtOf({ a: dollars }, 'a', used)).toBe(7_479_629n);
    const one = { prompt_tokens: 1, completion_tokens: 1 };
    expect(boughtOf({ a: { input: 0.000_000_4, output: 0.000_000_4, rate: 1 } }, 'a', one)).toBe(1n);
  });

  it('has the price of a call beside that of its tokens', () => {
    expect(boughtOf({ '*': { per_call: 0.05, rate: 7 } }, 'a', used)).toBe(350_000_000n);
    expect(boughtOf({ '*': { per_call: 0.05, input: 0.01, output: 0 } }, 'a', used)).toBe(80_000_000n);
  });
});
