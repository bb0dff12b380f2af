import { describe, expect, it } from 'vitest';
import { partCountsOf } from '../../../shared/wire/chat-response.ts';

describe('the part counts of a record', () => {
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
    expect(partCountsOf(counts)).toStrictEqual(expected);
  });
});
