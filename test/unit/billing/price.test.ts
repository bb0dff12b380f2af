import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { costOf, formatPrice, parsePrice, priceOf, type Price } from '../../../shared/billing/price.ts';
import type { ChargeEntry } from '../../../shared/wire/public/catalog.ts';

const rule = (id: number, more: Partial<ChargeEntry>): ChargeEntry => ({
  id,
  type: 'token-billing',
  models: ['m'],
  input: 0,
  output: 0,
  anonymous: false,
  ...more,
});
const tokens = (prompt_tokens: number, completion_tokens: number) => ({ prompt_tokens, completion_tokens });

describe('the price of a model', () => {
  it('is that of the rule with the lowest id that names it', () => {
    const charges = [
      rule(1, { models: ['other'], output: 9 }),
      rule(2, { type: 'times-billing', output: 0.5 }),
      rule(3, { input: 1, output: 2 }),
    ];
    expect(priceOf(charges, 'm')).toEqual({ type: 'times-billing', rule: 2, perCall: 500_000_000_000n });
  });

  it('is free by a rule, with the id of the rule, even beside prices in the row', () => {
    const charges = [rule(4, { type: 'non-billing', input: 1, output: 2 }), rule(5, { output: 3 })];
    expect(priceOf(charges, 'm')).toEqual({ type: 'non-billing', rule: 4 });
  });

  it('is free without a rule, and says that there is none', () => {
    expect(priceOf([rule(1, { models: ['M', 'm2', 'web-m'] })], 'm')).toEqual({
      type: 'non-billing',
      rule: null,
    });
  });

  it('is by tokens, in and out, to the 12th decimal', () => {
    expect(priceOf([rule(1, { input: 0.000_000_000_001, output: 1.25 })], 'm')).toEqual({
      type: 'token-billing',
      rule: 1,
      input: 1n,
      output: 1_250_000_000_000n,
    });
  });
});

describe('the cost of a call', () => {
  const cases: [string, Partial<ChargeEntry>, number, number, bigint][] = [
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
    expect(costOf(priceOf([rule(1, more)], 'm'), tokens(prompt, completion))).toBe(nano);
  });
});

describe('a price in short', () => {
  const written: [Price, string][] = [
    [{ type: 'non-billing', rule: null }, '-:free'],
    [{ type: 'non-billing', rule: 7 }, '7:free'],
    [{ type: 'times-billing', rule: 2, perCall: 500_000_000_000n }, '2:call:0.5'],
    [{ type: 'token-billing', rule: 3, input: 2_000_000_000n, output: 1n }, '3:tokens:0.002:0.000000000001'],
  ];
  it.each(written)('names the rule and its prices in yuan: %#', (price, text) => {
    expect(formatPrice(price)).toBe(text);
    expect(parsePrice(text)).toEqual(price);
  });

  const pico = fc.bigInt({ min: 0n, max: 10n ** 24n });
  const id = fc.integer({ min: -1000, max: Number.MAX_SAFE_INTEGER });
  const anyPrice: fc.Arbitrary<Price> = fc.oneof(
    fc.record({ type: fc.constant('non-billing' as const), rule: fc.option(id) }),
    fc.record({ type: fc.constant('times-billing' as const), rule: id, perCall: pico }),
    fc.record({ type: fc.constant('token-billing' as const), rule: id, input: pico, output: pico }),
  );
  it('reads back as what was written, so that a bill can be computed again', () => {
    fc.assert(
      fc.property(anyPrice, (price) => {
        expect(parsePrice(formatPrice(price))).toEqual(price);
      }),
    );
  });

  it.each([
    '',
    'x',
    '1',
    '1:call',
    '1:call:',
    '1:call:x',
    '-:call:1',
    '1:tokens:1',
    '1.5:call:1',
    '1:other:1',
    'x:free',
  ])('is not made of %j', (text) => {
    expect(parsePrice(text)).toBeUndefined();
  });
});
