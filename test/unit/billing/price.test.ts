import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { buildTariff, findModelLimits } from '../../../shared/billing/tariff.ts';
import { findRowProblem } from '../../../shared/billing/audit/recompute.ts';
import type { CloseRow } from '../../../shared/billing/ledger-row.ts';
import {
  computeBuyingCost,
  computeCost,
  formatPrice,
  computeInputCost,
  computeHighestCost,
  parseFactor,
  parsePrice,
  listPricedModels,
  choosePriceToReserve,
  applyServiceTier,
  findPrice,
  findRule,
  tiersOf,
  type Price,
  type PriceRule,
  type TokenCounts,
  type WrittenPrice,
} from '../../../shared/billing/price.ts';
import { computeCharge, costsNothing, type AnswerOutcome } from '../../../shared/billing/usage.ts';
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
const [december, january] = [Date.UTC(2026, 11, 1), Date.UTC(2027, 0, 1)];

describe('the price of a model', () => {
  it('is that of the matching rule with the lowest id', () => {
    const calls = rule(2, { type: 'times-billing', output: 0.5 });
    const charges = [rule(1, { models: ['other'], output: 9 }), calls, rule(3, { input: 1 })];
    expect(findPrice(charges, 'm', 0)).toEqual({ type: 'times-billing', rule: 2, perCall: 500_000_000_000n });
  });

  it("is free by a rule, with the rule's id, even beside prices in the row", () => {
    const charges = [rule(4, { type: 'non-billing', input: 1, output: 2 }), rule(5, { output: 3 })];
    expect(findPrice(charges, 'm', 0)).toEqual({ type: 'non-billing', rule: 4 });
  });

  it('is free without a rule, and reports that there is none', () => {
    const others = [rule(1, { models: ['M', 'm2', 'web-m'] })];
    expect(findPrice(others, 'm', 0)).toEqual({ type: 'non-billing', rule: null });
  });

  it('is charged for input and output tokens, to the 12th decimal', () => {
    const price = findPrice([rule(1, { input: 0.000_000_000_001, output: 1.25 })], 'm', 0);
    expect(price).toEqual(tokenPriceOf(1n, 1_250_000_000_000n));
  });

  const named = (id: number, from?: number) => rule(id, { from, input: id, image_tokens: id });
  const dated = [named(1), named(2, january), named(3, december), named(4, december), named(5)];
  it.each([
    [december - 1, 1],
    [december, 3],
    [january - 1, 3],
    [january, 2],
  ])(
    'at %d is that of rule %d, and so are its limits: the latest in force, then the lowest id',
    (nowMs, id) => {
      expect(findRule(dated, 'm', nowMs)?.id).toBe(id);
      expect(findPrice(dated, 'm', nowMs)).toMatchObject({ rule: id });
      const tariff = buildTariff({ models: ['m'], rulesOf: () => dated, defaultOutputTokens: 1, nowMs });
      expect(findModelLimits(tariff, 'm')).toMatchObject({ imageTokens: id, inputFactor: 1 });
    },
  );

  it('is undefined before the first rule takes effect', () => {
    expect(findRule([named(1, january)], 'm', january - 1)).toBeUndefined();
    const later = rule(2, { from: december, models: ['n'] });
    expect(listPricedModels([named(1, january), later], december)).toEqual(new Set(['n']));
  });
});

describe('the cost of a call', () => {
  it.each<[string, Partial<PriceRule>, number, number, bigint]>([
    ['nothing when it is free', { type: 'non-billing', output: 5 }, 1_000_000, 1_000_000, 0n],
    ['the output price once, whatever was used', { type: 'times-billing', output: 0.3 }, 9, 0, 300_000_000n],
    ['input and output per 1,000 tokens', { input: 0.002, output: 0.006 }, 1_000, 500, 5_000_000n],
    ['a thousandth for a token', { input: 0.002, output: 0.006 }, 1, 0, 2_000n],
    ['rounded once, not for each part', { input: 0.000_000_4, output: 0.000_000_4 }, 1, 1, 1n],
    ['rounded up from a half', { input: 0.000_000_5 }, 1, 0, 1n],
    ['rounded down below a half', { input: 0.000_000_499 }, 1, 0, 0n],
    [
      'exact beyond floats',
      { input: 0.1, output: 1e6 },
      100_000_003,
      99_999_999,
      100_000_009_000_000_300_000n,
    ],
  ])('is %s', (_case, more, prompt, completion, nano) => {
    expect(computeCost(findPrice([rule(1, more)], 'm', 0), tokens(prompt, completion))).toBe(nano);
  });
});

/** A call of 1,000 + 4,000 + 300 + 20 input tokens and 100 output tokens. */
const split = { cached_tokens: 4_000, cache_write_tokens: 300, cache_write_1h_tokens: 20 };
const cached: TokenCounts = { ...tokens(5_320, 100), prompt_tokens_details: split };
const cache = { cached_input: 0.002, cache_write: 0.025, cache_write_1h: 0.04 };
const vendor: WrittenPrice = { input: 0.02, output: 0.1, ...cache };
const long = { above: 200_000, input: 0.04, output: 0.15 };
const priced = (written: WrittenPrice): Price & { type: 'token-billing' } => ({
  type: 'token-billing',
  rule: 3,
  tiers: tiersOf(written),
});

it.each<[string, WrittenPrice, bigint]>([
  // 1,000 x 0.02 + 4,000 x 0.002 + 300 x 0.025 + 20 x 0.04 + 100 x 0.1, per 1,000.
  ['each part at its own price, the rest as input', vendor, 46_300_000n],
  ['like input if the rule has no price for it', { input: 0.02, output: 0.1 }, 116_400_000n],
  ['like input for one part only', { ...vendor, cached_input: undefined }, 118_300_000n],
  ['for free if the rule sets a price of 0', { ...vendor, cached_input: 0 }, 38_300_000n],
])('input that an upstream cached is charged once: %s', (_case, written, nano) => {
  expect(computeCost(priced(written), cached)).toBe(nano);
});

describe('tiers', () => {
  const tiered = priced({ ...vendor, tiers: [long, { above: 500_000, input: 0.08, output: 0.3 }] });
  it.each([
    ['up to the step', 0, 200_000, 4_100_000_000n],
    ['one token above it, for all tokens of the call', 0, 200_001, 8_150_040_000n],
    ['by all input, though most of it was read from the cache', 200_000, 1, 8_150_040_000n],
    ['in the first tier, where cached input keeps its price', 199_999, 1, 500_018_000n],
    ['of several the highest that is passed', 0, 500_001, 40_300_080_000n],
  ])('price a call %s', (_case, read, rest, nano) => {
    const used = { ...tokens(read + rest, 1_000), prompt_tokens_details: { cached_tokens: read } };
    expect(computeCost(tiered, used)).toBe(nano);
  });

  it('price the input only, and count for the reserve only if the input can reach them', () => {
    expect(computeInputCost(tiered, 200_001)).toBe(8_000_040_000n);
    expect(computeInputCost({ type: 'times-billing', rule: 1, perCall: 1n }, 9)).toBe(0n);
    // The dearest input is a cache write for an hour; above the step plain input costs the same. A tokenizer may count
    // 5 % more, which crosses the step.
    const most = [190_476, 190_477, 200_001, 500_001].map((input) => computeHighestCost(tiered, input, 10));
    expect(most).toEqual([7_620_040_000n, 7_620_580_000n, 8_001_540_000n, 40_003_080_000n]);
    expect(computeHighestCost({ type: 'times-billing', rule: 1, perCall: 5_000n }, 9, 9)).toBe(5n);
  });
});

describe('a service tier', () => {
  const tiers = { flex: 0.5, priority: 2, fast: 1.000_001, batch: 0.333_333 };
  const tiered = { ...priced(vendor), factors: tiers };
  it.each([
    ['half', 'flex', 23_150_000n],
    ['twice', 'priority', 92_600_000n],
    ['a factor to its last digit, rounded once', 'fast', 46_300_046n],
    ['a third, rounded half up', 'batch', 15_433_318n],
    ['the standard price without a factor', 'ultrafast', 46_300_000n],
    ['the standard price without a tier', undefined, 46_300_000n],
  ])('costs %s', (_what, tier, nano) => {
    expect(computeCost(applyServiceTier(tiered, tier), cached)).toBe(nano);
    // 0.0000005 yuan per 1,000 tokens: half of the smallest amount.
    const tiny = { ...priced({ input: 0.000_000_5, output: 0 }), factors: { half: 0.999_999 } };
    expect(computeCost(applyServiceTier(tiny, 'half'), tokens(1, 0))).toBe(0n);
    expect(computeCost(tiny, tokens(1, 0))).toBe(1n);
  });

  it('multiplies with the price factor, with one rounding, and a window replaces each separately', () => {
    const agreed = { ...tiered, factor: parseFactor(0.999_999_000_001) };
    // 0.0463 x 0.999999000001 x 0.333333 = 0.0154332991...
    const batch = applyServiceTier(applyServiceTier(agreed, 'fast'), 'batch');
    expect(computeCost(batch, cached)).toBe(15_433_302n);
    expect(formatPrice(batch, cached)).toBe('3:tokens:0.02:0.1:0.002:0.025:0.04:x0.333332666667333333');
    expect(formatPrice(applyServiceTier(batch, undefined), cached)).toMatch(/:x0\.999999000001$/);
  });

  it('does not change a price per call or a free price', () => {
    for (const price of [
      { type: 'non-billing', rule: 1 },
      { type: 'times-billing', rule: 1, perCall: 5n },
    ] as const)
      expect(applyServiceTier(price, 'flex')).toEqual(price);
  });
});

const yuan = fc.integer({ min: 0, max: 5_000_000 }).map((micro) => micro / 1_000_000);
const maybe = fc.option(yuan, { nil: undefined });
const rates = { input: yuan, output: yuan, cached_input: maybe, cache_write: maybe, cache_write_1h: maybe };
const tier = fc.record({ ...rates, above: fc.integer({ min: 1, max: 4_000 }) });
const tiersByStep = fc
  .array(tier, { maxLength: 3 })
  .map((list) => list.toSorted((a, b) => a.above - b.above));
const tierName = fc.constantFrom('flex', 'priority', 'fast', 'ultrafast', undefined);
const factor = fc.integer({ min: 1, max: 100_000_000 }).map((millionths) => millionths / 1_000_000);
const factors = fc.record({ flex: factor, priority: factor }, { requiredKeys: [] });
const agreedFactor = fc.tuple(factor, factor).map(([a, b]) => parseFactor(a * b) ?? parseFactor(a));
const byTokens = fc
  .tuple(fc.record({ ...rates, tiers: tiersByStep }), factors, fc.option(agreedFactor, { nil: undefined }))
  .map(([written, own, factor]) => Object.assign(priced(written), { factors: own, factor }));
const anyPrice: fc.Arbitrary<Price> = fc.oneof(
  fc.tuple(byTokens, tierName).map(([price, tier]) => applyServiceTier(price, tier)),
  fc.record({ type: fc.constant('non-billing' as const), rule: fc.option(fc.nat()) }),
  fc.record({
    type: fc.constant('times-billing' as const),
    rule: fc.nat(),
    perCall: fc.bigInt({ min: 0n, max: 10n ** 24n }),
    factor: fc.option(agreedFactor, { nil: undefined }),
  }),
);
const part = fc.integer({ min: 0, max: 1_000 });
const anyCall: fc.Arbitrary<TokenCounts> = fc
  .tuple(part, part, part, part, part)
  .map(([plain, cached_tokens, cache_write_tokens, cache_write_1h_tokens, completion_tokens]) => ({
    prompt_tokens: plain + cached_tokens + cache_write_tokens + cache_write_1h_tokens,
    completion_tokens,
    prompt_tokens_details: { cached_tokens, cache_write_tokens, cache_write_1h_tokens },
  }));

it('the most that a call can cost is never less than its cost, however its input is split', () => {
  fc.assert(
    fc.property(anyPrice, anyCall, part, (price, used, more) => {
      const most = computeHighestCost(price, used.prompt_tokens + more, used.completion_tokens + more);
      expect(most >= computeCost(price, used)).toBe(true);
    }),
  );
});

it('a reservation in any service tier covers the call in that tier and in the standard tier', () => {
  fc.assert(
    fc.property(byTokens, anyCall, tierName, (price, used, asked) => {
      const held = computeHighestCost(
        choosePriceToReserve(price, asked),
        used.prompt_tokens,
        used.completion_tokens,
      );
      for (const tier of [asked, undefined])
        expect(held >= computeCost(applyServiceTier(price, tier), used)).toBe(true);
    }),
  );
});

describe('a short price', () => {
  const tiered = priced({ ...vendor, tiers: [long] });
  it.each<[Price, string, number?]>([
    [{ type: 'non-billing', rule: null }, '-:free'],
    [{ type: 'non-billing', rule: 7 }, '7:free'],
    [{ type: 'times-billing', rule: 2, perCall: 500_000_000_000n }, '2:call:0.5'],
    [
      { type: 'times-billing', rule: 2, perCall: 500_000_000_000n, factor: parseFactor(0.8) },
      '2:call:0.5:x0.8',
    ],
    [
      { type: 'times-billing', rule: 2, perCall: 500_000_000_000n, window: 'off-peak' },
      '2:call:0.5:window=off-peak',
    ],
    [{ ...tiered, window: 'x2' }, '3:tokens:0.04:0.15:above=200000:window=x2', 200_001],
    [tokenPriceOf(2_000_000_000n, 1n, 3), '3:tokens:0.002:0.000000000001'],
    [tiered, '3:tokens:0.02:0.1:0.002:0.025:0.04', 200_000],
    [tiered, '3:tokens:0.04:0.15:above=200000', 200_001],
    [{ ...tiered, factor: parseFactor(0.5) }, '3:tokens:0.04:0.15:above=200000:x0.5', 200_001],
    [
      { ...tokenPriceOf(2_000_000_000n, 1n, 3), factor: parseFactor(12.000001) },
      '3:tokens:0.002:0.000000000001:x12.000001',
    ],
  ])('names the rule and its prices in yuan, with the tier of the tokens: %#', (price, text, input = 1) => {
    expect(formatPrice(price, tokens(input, 0))).toBe(text);
    const read = parsePrice(text);
    expect(read && formatPrice(read, tokens(input, 0))).toBe(text);
  });

  it('reproduces the cost of a call, so that a bill can be recomputed from its row alone', () => {
    fc.assert(
      fc.property(anyPrice, anyCall, (price, used) => {
        const read = parsePrice(formatPrice(price, used));
        expect(read && computeCost(read, used)).toEqual(computeCost(price, used));
      }),
    );
  });

  const bad = [
    '',
    'x',
    '1',
    '1:call',
    '1:call:',
    '1:call:x',
    '-:call:1',
    '1:call:-1',
    '1.5:call:1',
    'x:free',
  ];
  const badFactors = [
    '1:tokens:1:2:x',
    '1:tokens:1:2:x-1',
    '1:tokens:1:2:x0.0000000000000000001',
    '1:tokens:1:2:x2:above=5',
    '1:tokens:1:2:x2:window=peak',
    '1:tokens:1:2:window=Peak',
    '1:tokens:1:2:window=',
  ];
  const badTokens = ['1:tokens:1', '1:tokens:1:above=5', '1:tokens:1:2:3', '1:tokens:1:2:3:4:5:6:7:8:9'];
  it.each([...bad, ...badFactors, ...badTokens, '1:tokens:1:2:above=0', '1:tokens:1:2:over=7'])(
    'is not read from %j',
    (text) => {
      expect(parsePrice(text)).toBeUndefined();
    },
  );
});

describe('a ledger row is recomputed from its own fields', () => {
  const row = (more: Partial<CloseRow>): CloseRow => ({
    account: 'acme',
    id: '01m81b5hbv5v6x8y9z0a1b2c3d',
    at: '2026-11-22T00:00:00Z',
    kind: 'settled',
    model: 'm',
    key: '6f2d3c5e8a1b',
    charge: 46_800_000n,
    reserved: 1_000_000_000n,
    ...tokens(1_200, 350),
    price: '1:tokens:0.018:0.072',
    ...more,
  });
  const ofCache = { ...tokens(5_320, 100), ...split, price: '1:tokens:0.02:0.1:0.002:0.025:0.04' };
  const longPrice = '1:tokens:0.04:0.15:above=200000';
  const ofLong = { ...tokens(200_001, 1_000), cached_tokens: 200_000, price: longPrice };

  it.each<[string, Partial<CloseRow>, string | undefined]>([
    ['a price without parts', { cached_tokens: 1_024 }, undefined],
    ['prices of the cache', { ...ofCache, charge: 46_300_000n }, undefined],
    ['a higher tier', { ...ofLong, charge: 8_150_040_000n }, undefined],
    ['an expiry, for its input', { kind: 'expired', price: longPrice, charge: 40_000n }, undefined],
    [
      'a service tier',
      { price: '1:tokens:0.018:0.072:x0.5', service_tier: 'flex', charge: 23_400_000n },
      undefined,
    ],
    ['an expiry in one', { kind: 'expired', price: '1:tokens:0.018:0.072:x0.5', charge: 63_000n }, undefined],
    ['an official call', { ...ofCache, official: true, charge: 0n, cost: 46_300_000n }, undefined],
    [
      'cached tokens charged twice',
      { ...ofCache, charge: 54_300_000n },
      'charges 0.0543 yuan, expected 0.0463',
    ],
    ['a cache charged like other input', { ...ofCache, charge: 116_400_000n }, 'expected 0.0463'],
    [
      'a service tier at the standard price',
      { price: '1:tokens:0.018:0.072:x0.5', service_tier: 'flex' },
      'expected 0.0234',
    ],
    [
      'an expiry at the standard price of no number of tokens',
      { kind: 'expired', price: '1:tokens:0.018:0.072:x5', charge: 36_000n },
      'no number of input tokens',
    ],
    ['a double price', { charge: 93_600_000n }, 'expected 0.0468'],
    ['a price for a million', { charge: 46_800n }, 'expected 0.0468'],
    ['a tier that it does not reach', { ...ofLong, prompt_tokens: 200_000 }, 'more than 200000 input tokens'],
  ])('%s', (_case, more, problem) => {
    if (problem === undefined) expect(findRowProblem(row(more))).toBeUndefined();
    else expect(findRowProblem(row(more))).toContain(problem);
  });
});

describe('the cost of an answer by tokens, per call, and free of charge', () => {
  const outcome = (more: Partial<AnswerOutcome>) => ({
    failed: false,
    anyContent: true,
    usage: tokens(100, 10),
    ...more,
  });
  /** 1 and 2 nano-yuan per token. */
  const perToken = tokenPriceOf(1_000_000n, 2_000_000n);
  const perCall: Price = { type: 'times-billing', rule: 2, perCall: 50_000n };
  it.each<[string, AnswerOutcome, bigint, bigint]>([
    ['a whole answer', outcome({}), 120n, 50n],
    ['a complete answer that the upstream reports as free', outcome({ usage: tokens(0, 0) }), 0n, 50n],
    ['a complete answer without text', outcome({ anyContent: false }), 120n, 0n],
    ['a failure before any output', outcome({ failed: true, anyContent: false }), 0n, 0n],
    ['an answer that was cut', outcome({ failed: true }), 120n, 50n],
    ['an answer whose client left before any of it', outcome({ leftEarly: true }), 120n, 0n],
  ])('%s', (_case, ending, byTokens, byCall) => {
    const prices: Price[] = [perToken, perCall, { type: 'non-billing', rule: 3 }];
    expect(prices.map((price) => computeCharge(price, ending))).toEqual([byTokens, byCall, 0n]);
    expect(costsNothing(ending)).toBe(ending.failed && !ending.anyContent);
  });
});

describe("the operator's cost of a call", () => {
  const used = { ...tokens(3_000, 1_000), prompt_tokens_details: { cached_tokens: 2_000 } };
  const plain = { input: 0.01, output: 0.02 };
  const allDay = { name: 'peak', from: '00:00', to: '24:00', zone: 'UTC' };
  const dollars = { input: 0.000_15, output: 0.000_6, currency: 'USD', rate: 7.123_456 };
  it.each<[string, Parameters<typeof computeBuyingCost>[0], bigint | undefined]>([
    ['by the cache', { a: { ...plain, cached_input: 0.001 } }, 32_000_000n],
    ['by tiers', { a: { ...plain, tiers: [{ above: 2_999, input: 0.1, output: 0.2 }] } }, 500_000_000n],
    ['nothing, though others cost', { a: { input: 0, output: 0 }, '*': plain }, 0n],
    ['that of all others', { b: { input: 0, output: 0 }, '*': plain }, 50_000_000n],
    // (3 x 0.00015 + 0.0006) x 7.123456 = 0.0074796288
    ['in yuan, rounded once', { a: dollars }, 7_479_629n],
    ['by the service tier', { a: { ...plain, service_tiers: { flex: 0.5 } } }, 25_000_000n],
    [
      'by the service tier, except for the cost of the call',
      { a: { ...plain, per_call: 0.05, service_tiers: { flex: 0.5 } } },
      75_000_000n,
    ],
    ['by its hour', { a: { ...plain, windows: [{ ...allDay, factor: 2 }] } }, 100_000_000n],
    [
      'by its hour, including the cost of the call, in the service tier',
      { a: { ...plain, per_call: 0.05, service_tiers: { flex: 0.5 }, windows: [{ ...allDay, factor: 2 }] } },
      150_000_000n,
    ],
    [
      'by the prices of its hour, in another currency',
      { a: { ...dollars, windows: [{ ...allDay, input: 0.01, output: 0.02 }] } },
      356_172_800n,
    ],
    ['by other hours', { a: { ...plain, windows: [{ ...allDay, days: ['wed'], factor: 2 }] } }, 50_000_000n],
    ['by the call', { '*': { per_call: 0.05, rate: 7 } }, 350_000_000n],
    ['by the call and by tokens', { '*': { per_call: 0.05, input: 0.01, output: 0 } }, 80_000_000n],
    ['unknown', { b: plain }, undefined],
    ['unknown without prices', undefined, undefined],
  ])('%s', (_case, cost, nano) => {
    expect(computeBuyingCost(cost, 'a', used, { tier: 'flex', startedMs: december })).toBe(nano);
  });
});
