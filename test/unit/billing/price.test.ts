import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  costOf,
  inputCost,
  mostCost,
  tiersOf,
  type Price,
  type TokenCounts,
  type WrittenPrice,
  priceOf,
  type PriceRule,
} from '../../../shared/billing/price.ts';
import { tokenPriceOf } from '../../support/prices.ts';

const rule = (id: number, more: Partial<PriceRule>): PriceRule => ({
  id,
  type: 'token-billing',
  models: ['m'],
  input: 0,
  output: 0,
  anonymous: false,
  ...more,
});
const tokens = (prompt_tokens: number, completion_tokens: number) => ({ prompt_tokens, completion_tokens });
const nowMs = Date.UTC(2026, 10, 22);

describe('the price of a model', () => {
  it('is that of the rule with the lowest id that names it', () => {
    const charges = [
      rule(1, { models: ['other'], output: 9 }),
      rule(2, { type: 'times-billing', output: 0.5 }),
      rule(3, { input: 1, output: 2 }),
    ];
    expect(priceOf(charges, 'm', nowMs)).toEqual({
      type: 'times-billing',
      rule: 2,
      perCall: 500_000_000_000n,
    });
  });

  it('is free by a rule, with the id of the rule, even beside prices in the row', () => {
    const charges = [rule(4, { type: 'non-billing', input: 1, output: 2 }), rule(5, { output: 3 })];
    expect(priceOf(charges, 'm', nowMs)).toEqual({ type: 'non-billing', rule: 4 });
  });

  it('is free without a rule, and says that there is none', () => {
    expect(priceOf([rule(1, { models: ['M', 'm2', 'web-m'] })], 'm', nowMs)).toEqual({
      type: 'non-billing',
      rule: null,
    });
  });

  it('is by tokens, in and out, to the 12th decimal', () => {
    expect(priceOf([rule(1, { input: 0.000_000_000_001, output: 1.25 })], 'm', nowMs)).toEqual(
      tokenPriceOf(1n, 1_250_000_000_000n),
    );
  });
});

describe('the cost of a call', () => {
  const cases: [string, Partial<PriceRule>, number, number, bigint][] = [
    ['nothing when it is free', { type: 'non-billing', output: 5 }, 1_000_000, 1_000_000, 0n],
    ['the output price once, whatever was used', { type: 'times-billing', output: 0.3 }, 9, 0, 300_000_000n],
    ['input and output per 1,000 tokens', { input: 0.002, output: 0.006 }, 1_000, 500, 5_000_000n],
    ['a thousandth for a token', { input: 0.002, output: 0.006 }, 1, 0, 2_000n],
    ['nothing for no tokens', { input: 0.002, output: 0.006 }, 0, 0, 0n],
    ['rounded once, not for each part', { input: 0.000_000_4, output: 0.000_000_4 }, 1, 1, 1n],
    ['rounded up from a half', { input: 0.000_000_5 }, 1, 0, 1n],
    ['rounded down below a half', { input: 0.000_000_499 }, 1, 0, 0n],
    [
      'exact beyond what a float holds',
      { input: 0.1, output: 1e6 },
      100_000_003,
      99_999_999,
      100_000_009_000_000_300_000n,
    ],
  ];
  it.each(cases)('is %s', (_case, more, prompt, completion, nano) => {
    expect(costOf(priceOf([rule(1, more)], 'm', nowMs), tokens(prompt, completion))).toBe(nano);
  });
});

/** A call of 1,000 + 4,000 + 300 + 20 tokens of input and 100 of output. */
const cached: TokenCounts = {
  prompt_tokens: 5_320,
  completion_tokens: 100,
  prompt_tokens_details: { cached_tokens: 4_000, cache_write_tokens: 300, cache_write_1h_tokens: 20 },
};
const vendor: WrittenPrice = {
  input: 0.02,
  output: 0.1,
  cached_input: 0.002,
  cache_write: 0.025,
  cache_write_1h: 0.04,
};
const long = { above: 200_000, input: 0.04, output: 0.15 };
const priced = (written: WrittenPrice): Price & { type: 'token-billing' } => ({
  type: 'token-billing',
  rule: 1,
  tiers: tiersOf(written),
});

describe('input that an upstream cached', () => {
  it('is charged once, each part at its own price, the rest as input', () => {
    // 1,000 x 0.02 + 4,000 x 0.002 + 300 x 0.025 + 20 x 0.04 + 100 x 0.1, per 1,000.
    expect(costOf(priced(vendor), cached)).toBe(46_300_000n);
  });

  it('costs what input costs where the rule has no price for it', () => {
    expect(costOf(priced({ input: 0.02, output: 0.1 }), cached)).toBe(116_400_000n);
    expect(costOf(priced({ ...vendor, cached_input: undefined }), cached)).toBe(118_300_000n);
    expect(costOf(priced({ ...vendor, cached_input: 0 }), cached)).toBe(38_300_000n);
  });
});

describe('tiers', () => {
  const tiered = priced({ ...vendor, tiers: [long, { above: 500_000, input: 0.08, output: 0.3 }] });
  const call = (read: number, uncached: number): TokenCounts => ({
    prompt_tokens: read + uncached,
    completion_tokens: 1_000,
    prompt_tokens_details: { cached_tokens: read },
  });

  it.each([
    ['up to the step', call(0, 200_000), 4_100_000_000n],
    ['one token above it, for all tokens of the call', call(0, 200_001), 8_150_040_000n],
    ['by all input, though most of it was read from the cache', call(200_000, 1), 8_150_040_000n],
    ['in the first, where cached input keeps its price', call(199_999, 1), 500_018_000n],
    ['of several the highest that is passed', call(0, 500_001), 40_300_080_000n],
  ])('price a call %s', (_case, used, nano) => {
    expect(costOf(tiered, used)).toBe(nano);
  });

  it('price the input alone in the same way', () => {
    expect(inputCost(tiered, 200_001)).toBe(8_000_040_000n);
    expect(inputCost({ type: 'times-billing', rule: 1, perCall: 1n }, 9)).toBe(0n);
  });

  it('count for the reserve only where the input can reach them', () => {
    // The dearest input is what is written for an hour, 0.04; above the step the plain input costs as much.
    expect(mostCost(tiered, 190_476, 10)).toBe(7_620_040_000n);
    // A tokenizer may count 5 % more, and is then above the step.
    expect(mostCost(tiered, 190_477, 10)).toBe(7_620_580_000n);
    expect(mostCost(tiered, 200_001, 10)).toBe(8_001_540_000n);
    expect(mostCost(tiered, 500_001, 10)).toBe(40_003_080_000n);
    expect(mostCost({ type: 'times-billing', rule: 1, perCall: 5_000n }, 9, 9)).toBe(5n);
  });
});

const yuan = fc.integer({ min: 0, max: 5_000_000 }).map((micro) => micro / 1_000_000);
const rates = {
  input: yuan,
  output: yuan,
  cached_input: fc.option(yuan, { nil: undefined }),
  cache_write: fc.option(yuan, { nil: undefined }),
  cache_write_1h: fc.option(yuan, { nil: undefined }),
};
const written: fc.Arbitrary<WrittenPrice> = fc.record({
  ...rates,
  tiers: fc
    .array(fc.record({ ...rates, above: fc.integer({ min: 1, max: 4_000 }) }), { maxLength: 3 })
    .map((tiers) => tiers.toSorted((a, b) => a.above - b.above)),
});
const part = fc.integer({ min: 0, max: 1_000 });

it('the most that a call can cost is never less than what it costs, however its input is split', () => {
  fc.assert(
    fc.property(written, part, part, part, part, part, (price, a, b, c, d, output) => {
      const prompt_tokens = a + b + c + d;
      const details = { cached_tokens: b, cache_write_tokens: c, cache_write_1h_tokens: d };
      const used = { prompt_tokens, completion_tokens: output, prompt_tokens_details: details };
      const cost = costOf(priced(price), used);
      expect(mostCost(priced(price), prompt_tokens, output) >= cost).toBe(true);
      expect(mostCost(priced(price), prompt_tokens + 500, output + 7) >= cost).toBe(true);
    }),
  );
});
