import { describe, expect, it } from 'vitest';
import { boundedUsage, cacheCounts } from '../../../shared/billing/cache-counts.ts';
import type { PromptTokensDetails } from '../../../shared/wire/chat-response.ts';

const usageWith = (details?: PromptTokensDetails) => ({
  prompt_tokens: 100,
  completion_tokens: 5,
  total_tokens: 105,
  ...(details && { prompt_tokens_details: details }),
});

describe('the cache counts of a usage', () => {
  it.each<[string, PromptTokensDetails, PromptTokensDetails]>([
    [
      'pass when they fit',
      { cached_tokens: 90, cache_write_tokens: 10 },
      { cached_tokens: 90, cache_write_tokens: 10 },
    ],
    ['have no write where the upstream reports none', { cached_tokens: 4 }, { cached_tokens: 4 }],
    [
      'keep a zero that the upstream reports',
      { cached_tokens: 0, cache_write_tokens: 0 },
      { cached_tokens: 0, cache_write_tokens: 0 },
    ],
    ['have no zero for the hour', { cached_tokens: 0, cache_write_1h_tokens: 0 }, { cached_tokens: 0 }],
    ['are at most the prompt', { cached_tokens: 101 }, { cached_tokens: 100 }],
    [
      'are together at most the prompt: reads first, writes for an hour last',
      { cached_tokens: 60, cache_write_tokens: 30, cache_write_1h_tokens: 30 },
      { cached_tokens: 60, cache_write_tokens: 30, cache_write_1h_tokens: 10 },
    ],
    [
      'leave nothing to writes when all was read',
      { cached_tokens: 1e9, cache_write_tokens: 100, cache_write_1h_tokens: 100 },
      { cached_tokens: 100, cache_write_tokens: 0 },
    ],
    [
      'are whole and not negative',
      { cached_tokens: -7, cache_write_tokens: Number.NaN, cache_write_1h_tokens: 2.6 },
      { cached_tokens: 0, cache_write_tokens: 0, cache_write_1h_tokens: 3 },
    ],
    ['do not outgrow the prompt when infinite', { cached_tokens: Infinity }, { cached_tokens: 100 }],
  ])('%s', (_, details, expected) => {
    const given = usageWith(details);
    expect(boundedUsage(given)).toStrictEqual(usageWith(expected));
    expect(given).toStrictEqual(usageWith(details));
  });

  it('stay unknown when the usage has none', () => {
    expect(boundedUsage(usageWith())).toStrictEqual(usageWith());
  });
});

describe('the cache counts of a record', () => {
  it.each([
    [undefined, undefined],
    [{}, undefined],
    [{ cached_tokens: 0, cache_write_tokens: 0, cache_write_1h_tokens: 0 }, undefined],
    [{ cached_tokens: 3, cache_write_tokens: 0 }, { cached_tokens: 3 }],
    [
      { cached_tokens: 1, cache_write_tokens: 2, cache_write_1h_tokens: 3 },
      { cached_tokens: 1, cache_write_tokens: 2, cache_write_1h_tokens: 3 },
    ],
  ])('of %j are %j', (counts, expected) => {
    expect(cacheCounts(counts)).toStrictEqual(expected);
  });
});
