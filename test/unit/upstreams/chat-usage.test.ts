import { describe, expect, it } from 'vitest';
import { readUsage } from '../../../shared/upstreams/dialects/chat/usage.ts';

const counts = (value: unknown): unknown => {
  const read = readUsage(value);
  if (!read) return undefined;
  const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = read.usage;
  return [prompt, completion, total, read.clamped];
};

describe("an upstream's usage", () => {
  it.each([
    ['plain', { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 }, [3, 4, 7, false]],
    ['explicit zero', { prompt_tokens: 0, completion_tokens: 0 }, [0, 0, 0, false]],
    ['other names', { input_tokens: 3, output_tokens: 4 }, [3, 4, 7, false]],
    [
      'a total that disagrees',
      { prompt_tokens: 3, completion_tokens: 4, total_tokens: 99 },
      [3, 4, 7, false],
    ],
    [
      'reasoning beside the completion',
      {
        prompt_tokens: 3,
        completion_tokens: 4,
        total_tokens: 17,
        completion_tokens_details: { reasoning_tokens: 10 },
      },
      [3, 14, 17, false],
    ],
    [
      'reasoning inside the completion',
      {
        prompt_tokens: 3,
        completion_tokens: 14,
        total_tokens: 17,
        completion_tokens_details: { reasoning_tokens: 10 },
      },
      [3, 14, 17, false],
    ],
    ['negative', { prompt_tokens: -3, completion_tokens: 4 }, [0, 4, 4, true]],
    ['beyond belief', { prompt_tokens: 1e300, completion_tokens: 4 }, [1e8, 4, 1e8 + 4, true]],
    ['fractional', { prompt_tokens: 2.6, completion_tokens: 4 }, [3, 4, 7, true]],
    ['empty', {}, undefined],
    ['null', null, undefined],
    ['text', { prompt_tokens: '3' }, undefined],
  ])('%s', (_case, value, expected) => {
    expect(counts(value)).toEqual(expected);
  });

  it('keeps cached and reasoning tokens inside their totals', () => {
    const read = readUsage({
      prompt_tokens: 5,
      completion_tokens: 2,
      prompt_tokens_details: { cached_tokens: 9 },
      completion_tokens_details: { reasoning_tokens: 1 },
    });
    expect(read?.usage).toMatchObject({
      prompt_tokens_details: { cached_tokens: 5 },
      completion_tokens_details: { reasoning_tokens: 1 },
    });
  });
});
