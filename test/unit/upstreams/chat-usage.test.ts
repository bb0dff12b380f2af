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

describe("the upstream's cache", () => {
  const split = (value: object): unknown => {
    const usage = readUsage(value)?.usage;
    return [usage?.prompt_tokens, usage?.prompt_tokens_details];
  };
  const base = { prompt_tokens: 10, completion_tokens: 1 };
  it.each([
    [
      'reads, as OpenAI names them',
      { ...base, prompt_tokens_details: { cached_tokens: 4 } },
      [10, { cached_tokens: 4 }],
    ],
    [
      'reads and writes, as OpenRouter names them',
      { ...base, prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 2 } },
      [10, { cached_tokens: 4, cache_write_tokens: 2 }],
    ],
    [
      'no writes, which is not none reported',
      { ...base, cache_write_tokens: 0 },
      [10, { cached_tokens: 0, cache_write_tokens: 0 }],
    ],
    [
      'reads, as DeepSeek names them',
      { ...base, prompt_cache_hit_tokens: 4, prompt_cache_miss_tokens: 6 },
      [10, { cached_tokens: 4 }],
    ],
    ['reads, as Moonshot names them', { ...base, cached_tokens: 4 }, [10, { cached_tokens: 4 }]],
    [
      'reads and writes of a gateway that counts them into the prompt',
      { ...base, cache_read_input_tokens: 4, cache_creation_input_tokens: 2 },
      [10, { cached_tokens: 4, cache_write_tokens: 2 }],
    ],
    [
      'reads and writes beside the input, as Anthropic counts',
      { input_tokens: 10, output_tokens: 1, cache_read_input_tokens: 4, cache_creation_input_tokens: 2 },
      [16, { cached_tokens: 4, cache_write_tokens: 2 }],
    ],
    [
      'more than the prompt, so they were counted beside it',
      { ...base, cache_read_input_tokens: 400, cache_creation_input_tokens: 2 },
      [412, { cached_tokens: 400, cache_write_tokens: 2 }],
    ],
    [
      'writes for an hour apart',
      {
        ...base,
        cache_read_input_tokens: 0,
        cache_creation_input_tokens: 5,
        cache_creation: { ephemeral_5m_input_tokens: 2, ephemeral_1h_input_tokens: 3 },
      },
      [10, { cached_tokens: 0, cache_write_tokens: 2, cache_write_1h_tokens: 3 }],
    ],
    [
      'more than there was, which is lowered',
      { ...base, cached_tokens: 8, cache_write_tokens: 8 },
      [10, { cached_tokens: 8, cache_write_tokens: 2 }],
    ],
  ])('has %s', (_case, value, expected) => {
    expect(split(value)).toEqual(expected);
  });
});
