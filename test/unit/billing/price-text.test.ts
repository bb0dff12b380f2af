import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { eachPart } from '../../../shared/wire/chat-response.ts';
import {
  formatPrice,
  parsePrice,
  costOf,
  tiersOf,
  type Price,
  type Rates,
  type Tiers,
} from '../../../shared/billing/price.ts';
import { plainRates, tokenPriceOf } from '../../support/prices.ts';

const cache = { input: 0.02, output: 0.1, cached_input: 0.002, cache_write: 0.025, cache_write_1h: 0.04 };
const tiers = tiersOf({ ...cache, tiers: [{ above: 200_000, input: 0.04, output: 0.15 }] });
const tiered: Price = { type: 'token-billing', rule: 3, tiers };

describe('a price in short', () => {
  const written: [Price, string][] = [
    [{ type: 'non-billing', rule: null }, '-:free'],
    [{ type: 'non-billing', rule: 7 }, '7:free'],
    [{ type: 'times-billing', rule: 2, perCall: 500_000_000_000n }, '2:call:0.5'],
    [tokenPriceOf(2_000_000_000n, 1n, 3), '3:tokens:0.002:0.000000000001'],
    [{ ...tiered, tiers: tiersOf(cache) }, '3:tokens:0.02:0.1:0.002:0.025:0.04'],
  ];
  it.each(written)('names the rule and its prices in yuan: %#', (price, text) => {
    expect(formatPrice(price)).toBe(text);
    expect(parsePrice(text)).toEqual(price);
  });

  it('has of several tiers the one that the tokens come to', () => {
    expect(formatPrice(tiered)).toBe('3:tokens:0.02:0.1:0.002:0.025:0.04');
    expect(formatPrice(tiered, { prompt_tokens: 200_000 })).toBe('3:tokens:0.02:0.1:0.002:0.025:0.04');
    expect(formatPrice(tiered, { prompt_tokens: 200_001 })).toBe('3:tokens:0.04:0.15:above=200000');
    expect(parsePrice('3:tokens:0.04:0.15:above=200000')).toEqual({ ...tiered, tiers: [tiers[1]] });
  });

  const pico = fc.bigInt({ min: 0n, max: 10n ** 24n });
  const id = fc.integer({ min: -1000, max: Number.MAX_SAFE_INTEGER });
  const rates: fc.Arbitrary<Rates> = fc.oneof(
    fc.tuple(pico, pico).map(([input, output]) => plainRates(input, output)),
    fc.record({ input: pico, output: pico, ...eachPart('name', () => pico) }),
  );
  const above = fc.integer({ min: 1, max: 1_000_000 });
  const anyTiers: fc.Arbitrary<Tiers> = fc.tuple(rates, rates, above).map(([low, high, step]) => [
    { above: 0, rates: low },
    { above: step, rates: high },
  ]);
  const anyPrice: fc.Arbitrary<Price> = fc.oneof(
    fc.record({ type: fc.constant('non-billing' as const), rule: fc.option(id) }),
    fc.record({ type: fc.constant('times-billing' as const), rule: id, perCall: pico }),
    fc.record({ type: fc.constant('token-billing' as const), rule: id, tiers: anyTiers }),
  );
  it('reads back as what a call cost, so that a bill can be computed again from its row alone', () => {
    const counts = fc.tuple(above, above, above);
    fc.assert(
      fc.property(anyPrice, counts, (price, [uncached, cached_tokens, completion_tokens]) => {
        const prompt_tokens_details = { cached_tokens };
        const used = { prompt_tokens: uncached + cached_tokens, completion_tokens, prompt_tokens_details };
        const read = parsePrice(formatPrice(price, used));
        expect(read && costOf(read, used)).toEqual(costOf(price, used));
        expect(read && formatPrice(read, used)).toEqual(formatPrice(price, used));
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
    '1:call:-1',
    '1:tokens:1',
    '1:tokens:1:above=5',
    '1:tokens:1:2:3',
    '1:tokens:1:2:3:4:5:6:7:8:9',
    '1:tokens:1:2:above=0',
    '1:tokens:1:2:over=7',
    '1.5:call:1',
    '1:other:1',
    'x:free',
  ])('is not made of %j', (text) => {
    expect(parsePrice(text)).toBeUndefined();
  });
});
