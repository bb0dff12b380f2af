import { describe, expect, it } from 'vitest';
import type { CloseRow } from '../../../shared/billing/ledger-row.ts';
import { problemOf } from '../../../shared/billing/audit/recompute.ts';

const row = (more: Partial<CloseRow>): CloseRow => ({
  account: 'acme',
  id: '01m81b5hbv5v6x8y9z0a1b2c3d',
  at: '2026-11-22T00:00:00Z',
  kind: 'settled',
  model: 'm',
  key: '6f2d3c5e8a1b',
  charge: 46_800_000n,
  reserved: 1_000_000_000n,
  prompt_tokens: 1_200,
  completion_tokens: 350,
  price: '1:tokens:0.018:0.072',
  ...more,
});
const split = { cached_tokens: 4_000, cache_write_tokens: 300, cache_write_1h_tokens: 20 };
const cached = { prompt_tokens: 5_320, completion_tokens: 100, ...split };
const cachePrice = '1:tokens:0.02:0.1:0.002:0.025:0.04';
const long = { prompt_tokens: 200_001, cached_tokens: 200_000, completion_tokens: 1_000 };
const longPrice = '1:tokens:0.04:0.15:above=200000';

describe('a ledger row is recomputed from itself', () => {
  it.each<[string, Partial<CloseRow>]>([
    ['as the version before wrote it', {}],
    ['with counts of the cache that its price does not name', { cached_tokens: 1_024 }],
    ['with prices of the cache', { ...cached, price: cachePrice, charge: 46_300_000n }],
    ['of a higher tier', { ...long, price: longPrice, charge: 8_150_040_000n }],
    [
      'that expired, charged for its input at its tier',
      { kind: 'expired', price: longPrice, charge: 40_000n },
    ],
    ['of an official call', { ...cached, official: true, charge: 0n, cost: 46_300_000n, price: cachePrice }],
  ])('%s', (_case, more) => {
    expect(problemOf(row(more))).toBeUndefined();
  });

  it.each<[string, Partial<CloseRow>, string]>([
    [
      'cached tokens were charged as input and once more as cached',
      { ...cached, price: cachePrice, charge: 54_300_000n },
      'it charges 0.0543 yuan, wanted 0.0463',
    ],
    [
      'the cache was charged like other input',
      { ...cached, price: cachePrice, charge: 116_400_000n },
      'wanted 0.0463',
    ],
    ['the price is double', { charge: 93_600_000n }, 'wanted 0.0468'],
    ['the charge is for a million where a thousand is meant', { charge: 46_800n }, 'wanted 0.0468'],
    [
      'the tier is one that the tokens do not come to',
      { ...long, prompt_tokens: 200_000, cached_tokens: 199_999, price: longPrice, charge: 8_150_000_000n },
      'its price is for more than 200000 input tokens, but it has 200000',
    ],
  ])('so it is noticed that %s', (_case, more, problem) => {
    expect(problemOf(row(more))).toContain(problem);
  });
});
