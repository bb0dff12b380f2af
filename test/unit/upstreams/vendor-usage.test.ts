import { describe, expect, it } from 'vitest';
import { countsOfEvent } from '../../../shared/upstreams/dialects/chat/events.ts';
import { countsOf as messagesCounts } from '../../../shared/upstreams/dialects/messages/events.ts';
import { countsOf as responsesCounts } from '../../../shared/upstreams/dialects/responses/events.ts';
import { findModelRules } from '../../../shared/upstreams/model-rules.ts';
import { UsageCounts, type VendorCounts } from '../../../shared/upstreams/answer-writer.ts';
import type { ReportedUsage } from '../../../shared/wire/chat-response.ts';

const merged = (...counts: (VendorCounts | undefined)[]): ReportedUsage | undefined => {
  const all = new UsageCounts();
  for (const each of counts) all.push(each);
  const { reported } = all;
  return reported && (JSON.parse(JSON.stringify(reported)) as ReportedUsage);
};
const chat = (usage: object): VendorCounts | undefined => countsOfEvent({ choices: [], usage });
const gemini = (usage: object): VendorCounts | undefined =>
  countsOfEvent({ choices: [], usage }, findModelRules('gemini-3-pro-preview', 'max_tokens'));
const answers = (usage: object): VendorCounts | undefined => responsesCounts(usage);

describe('the usage of each vendor is normalised:', () => {
  it.each<[string, (VendorCounts | undefined)[], ReportedUsage]>([
    [
      'OpenAI, chat completions: the prompt includes the cache, the completion its reasoning',
      [
        chat({
          prompt_tokens: 1200,
          completion_tokens: 300,
          total_tokens: 1500,
          prompt_tokens_details: { cached_tokens: 1024, audio_tokens: 0 },
          completion_tokens_details: { reasoning_tokens: 256, accepted_prediction_tokens: 0 },
        }),
      ],
      { input: 1200, output: 300, cached: 1024, reasoning: 256 },
    ],
    [
      'OpenAI, Responses: null while it runs, then the same under other names',
      [
        responsesCounts(null),
        responsesCounts({
          input_tokens: 100,
          input_tokens_details: { cached_tokens: 60, cache_write_tokens: 30 },
          output_tokens: 20,
          output_tokens_details: { reasoning_tokens: 8 },
          total_tokens: 120,
        }),
      ],
      { input: 100, output: 20, cached: 60, written: 30, reasoning: 8 },
    ],
    [
      'Anthropic: a negative cache part is kept as a fault, and does not reduce the input',
      [messagesCounts({ input_tokens: 50, cache_read_input_tokens: -25, output_tokens: 4 })],
      { input: 50, output: 4, cached: -25 },
    ],
    [
      'Anthropic: the input excludes both parts of the cache, and arrives in two events',
      [
        messagesCounts({
          input_tokens: 21,
          cache_creation_input_tokens: 188_086,
          cache_read_input_tokens: 10,
          cache_creation: { ephemeral_5m_input_tokens: 100_000, ephemeral_1h_input_tokens: 88_086 },
          output_tokens: 1,
        }),
        messagesCounts({ output_tokens: 393, output_tokens_details: { thinking_tokens: 50 } }),
      ],
      { input: 188_117, output: 393, cached: 10, written: 188_086, writtenForHour: 88_086, reasoning: 50 },
    ],
    [
      'GLM in Messages: an estimate of the input at the start, its counts at the end',
      [
        messagesCounts({ input_tokens: 34_824, output_tokens: 0 }),
        messagesCounts({ input_tokens: 3_883, cache_read_input_tokens: 30_464, output_tokens: 120 }),
      ],
      { input: 34_347, output: 120, cached: 30_464 },
    ],
    [
      'Qwen in Messages: the cache reads arrive at the end without the input that includes them',
      [
        messagesCounts({ input_tokens: 3_602, output_tokens: 0 }),
        messagesCounts({ cache_read_input_tokens: 3_604, output_tokens: 41 }),
      ],
      { input: 3_602, output: 41, cached: 3_602 },
    ],
    [
      'a gateway that repeats the first input without the cache reads and writes',
      [
        messagesCounts({ input_tokens: 21, cache_creation_input_tokens: 900, cache_read_input_tokens: 10 }),
        messagesCounts({ input_tokens: 21, output_tokens: 393 }),
      ],
      { input: 931, output: 393, cached: 10, written: 900 },
    ],
    [
      'a gateway that has nothing but zeros at the start',
      [
        messagesCounts({ input_tokens: 0, output_tokens: 0 }),
        messagesCounts({ cache_read_input_tokens: 0, cache_creation_input_tokens: 0 }),
        messagesCounts({ input_tokens: 0, cache_read_input_tokens: 40, output_tokens: 7 }),
      ],
      { input: 40, output: 7, cached: 40 },
    ],
    [
      'a server that recounts the prompt at the end: its total includes the last count',
      [
        chat({ prompt_tokens: 100, completion_tokens: 0, total_tokens: 100 }),
        chat({ prompt_tokens: 40, completion_tokens: 10, total_tokens: 50 }),
      ],
      { input: 40, output: 10 },
    ],
    [
      'Gemini compatible: thinking is only in the total',
      [gemini({ prompt_tokens: 8, completion_tokens: 21, total_tokens: 529 })],
      { input: 8, output: 521 },
    ],
    [
      'DeepSeek: hits and misses, which together are the prompt',
      [
        chat({
          prompt_tokens: 1000,
          completion_tokens: 40,
          total_tokens: 1040,
          prompt_cache_hit_tokens: 896,
          prompt_cache_miss_tokens: 104,
          completion_tokens_details: { reasoning_tokens: 30 },
        }),
      ],
      { input: 1000, output: 40, cached: 896, reasoning: 30 },
    ],
    [
      'xAI: reasoning outside the completion, as its total shows',
      [
        chat({
          prompt_tokens: 32,
          completion_tokens: 9,
          total_tokens: 135,
          prompt_tokens_details: { cached_tokens: 6 },
          completion_tokens_details: { reasoning_tokens: 94 },
        }),
      ],
      { input: 32, output: 103, cached: 6, reasoning: 94 },
    ],
    [
      'vLLM with counts that grow from chunk to chunk',
      [
        chat({ prompt_tokens: 11, completion_tokens: 1, total_tokens: 12 }),
        chat({ prompt_tokens: 11, completion_tokens: 2, total_tokens: 13 }),
        chat({ prompt_tokens: 11, completion_tokens: 8, total_tokens: 19, prompt_tokens_details: null }),
      ],
      { input: 11, output: 8 },
    ],
    [
      'a gateway that counts the cache into the prompt and keeps the names',
      [chat({ prompt_tokens: 100, completion_tokens: 5, total_tokens: 105, cache_read_input_tokens: 40 })],
      { input: 100, output: 5, cached: 40 },
    ],
    [
      'a gateway whose cache counts are larger than its prompt, so beside it',
      [chat({ prompt_tokens: 10, completion_tokens: 1, cache_read_input_tokens: 400 })],
      { input: 410, output: 1, cached: 400 },
    ],
    [
      "a gateway with Anthropic's own shape",
      [
        chat({
          input_tokens: 10,
          output_tokens: 1,
          cache_read_input_tokens: 4,
          cache_creation_input_tokens: 2,
        }),
      ],
      { input: 16, output: 1, cached: 4, written: 2 },
    ],
  ])('%s', (_vendor, counts, expected) => {
    expect(merged(...counts)).toEqual(expected);
  });
});

/** 100 input and 8 output tokens: the meaning of a larger total, by the counts beside it. */
describe('a total above the sum of input and output', () => {
  const said = { prompt_tokens: 100, completion_tokens: 8 };
  const cache = (cached_tokens: number, cache_write_tokens?: number) => ({
    prompt_tokens_details: { cached_tokens, ...(cache_write_tokens && { cache_write_tokens }) },
  });
  const thought = (reasoning_tokens: number) => ({ completion_tokens_details: { reasoning_tokens } });
  const thinks = 'is output as far as reasoning beside it explains it';
  const twice = 'is not output if it repeats the cache';
  it.each<[string, number, object, number]>([
    [thinks, 158, thought(50), 58],
    [thinks, 109, thought(1), 9],
    [thinks, 138, thought(50), 38],
    [thinks, 400, thought(50), 58],
    [`${thinks}, the cache once more or not`, 198, { ...thought(50), ...cache(40) }, 58],
    [`${thinks}, the cache once more or not`, 113, { ...thought(5), ...cache(40) }, 13],
    [twice, 148, cache(40), 8],
    [twice, 138, cache(0, 30), 8],
    [twice, 178, cache(40, 30), 8],
    [twice, 148, { ...cache(40, 30), ...thought(4) }, 8],
    [twice, 113, { ...cache(5), ...thought(5) }, 8],
    ['is not output if nothing explains it', 148, {}, 8],
    ['is not output if nothing explains it', 148, thought(4), 8],
    ['is not output if nothing explains it', 9e9, cache(40), 8],
  ])('%s: %d', (_case, total_tokens, more, output) => {
    expect(merged(chat({ ...said, total_tokens, ...more }))).toMatchObject({ input: 100, output });
    const { prompt_tokens_details: read, completion_tokens_details: wrote } = more as Record<string, object>;
    const usage = { input_tokens: 100, output_tokens: 8, total_tokens };
    const details = { input_tokens_details: read, output_tokens_details: wrote };
    expect(merged(answers({ ...usage, ...details }))).toMatchObject({ input: 100, output });
  });

  it.each<[string, number, object, number]>([
    ['is output', 148, {}, 48],
    ['is output', 148, cache(20), 48],
    ['is not output if it repeats the cache', 148, cache(40), 8],
    ['is output as far as its reasoning is named', 198, thought(50), 58],
  ])('of a model that counts thinking only there %s: %d', (_case, total_tokens, more, output) => {
    expect(merged(gemini({ ...said, total_tokens, ...more }))).toMatchObject({ input: 100, output });
  });

  it('adds the cache to the input if the cache is larger', () => {
    const usage = { prompt_tokens: 479, completion_tokens: 373, total_tokens: 14_164, ...cache(13_312) };
    expect(merged(chat(usage))).toEqual({ input: 13_791, output: 373, cached: 13_312 });
    expect(merged(chat({ ...usage, total_tokens: 852 }))).toMatchObject({ input: 479, output: 373 });
  });
});

describe('cache writes by lifetime', () => {
  const named = { cache_creation_input_tokens: 40, output_tokens: 1 };
  const written = (five?: number, hour?: number) => ({
    cache_creation: { ephemeral_5m_input_tokens: five, ephemeral_1h_input_tokens: hour },
  });
  it.each<[string, object, ReportedUsage]>([
    ['are parts of their sum', { ...named, ...written(30, 10) }, { written: 40, writtenForHour: 10 }],
    ['are limited in total, the shorter ones first', { ...named, ...written(40, 40) }, { writtenForHour: 0 }],
    [
      'are limited in total, the shorter ones first',
      { ...named, ...written(25, 40) },
      { writtenForHour: 15 },
    ],
    [
      'are limited in total, with only one of them',
      { ...named, ...written(undefined, 70) },
      { writtenForHour: 40 },
    ],
    ['are their sum if no total is reported', written(30, 10), { written: 40, writtenForHour: 10 }],
  ])('%s: %j', (_case, usage, expected) => {
    const messages = messagesCounts({ input_tokens: 20, ...usage });
    expect(merged(messages)).toMatchObject({ input: 60, written: 40, ...expected });
    expect(merged(chat({ input_tokens: 20, ...usage }))).toMatchObject({ written: 40, ...expected });
  });
});

describe('the counts of several runs', () => {
  const message = { input_tokens: 23, output_tokens: 10, cache_read_input_tokens: 7 };
  const summary = { type: 'compaction', input_tokens: 180, output_tokens: 35 };
  const counts = (...iterations: object[]): VendorCounts | undefined =>
    messagesCounts({ ...message, iterations });
  it.each<[string, object[], ReportedUsage]>([
    ['are added up', [summary, { type: 'message', ...message }], { input: 210, output: 45, cached: 7 }],
    [
      'use the total for fields that no run reports',
      [{ input_tokens: 23, output_tokens: 10 }],
      { input: 30, output: 10 },
    ],
    ['are not less than those of all', [{ input_tokens: 3, output_tokens: 35 }], { input: 30, output: 10 }],
    ['are not less than those of all', [{ ...message, output_tokens: 9 }], { input: 30, output: 10 }],
    ['are not words', [summary, { ...message, output_tokens: 'many' }], { input: 30, output: 10 }],
  ])('%s: %j', (_case, iterations, expected) => {
    expect(merged(counts(...iterations))).toMatchObject(expected);
  });
});

describe('a count', () => {
  it.each<[string, object[], ReportedUsage | undefined]>([
    ['that is absent is unknown', [{ prompt_tokens: 3 }], { input: 3 }],
    ['that is null is unknown', [{ prompt_tokens: null, completion_tokens: 4 }], { output: 4 }],
    ['that is a word is unknown', [{ prompt_tokens: 'many', completion_tokens: 4 }], { output: 4 }],
    ['that is an object is unknown', [{ prompt_tokens: {}, completion_tokens: 4 }], { output: 4 }],
    ['that is zero is known', [{ prompt_tokens: 0, completion_tokens: 0 }], { input: 0, output: 0 }],
    [
      'that is digits as text is known: writers of 64-bit integers send it so',
      [{ prompt_tokens: '3', completion_tokens: '4' }],
      { input: 3, output: 4 },
    ],
    [
      'that is a fraction is rounded',
      [{ prompt_tokens: 2.6, completion_tokens: 4 }],
      { input: 3, output: 4 },
    ],
    [
      'that is impossible stays so',
      [{ prompt_tokens: -3, completion_tokens: 1e12 }],
      { input: -3, output: 1e12 },
    ],
    [
      'that is not a number is impossible',
      [{ prompt_tokens: NaN, completion_tokens: 4 }],
      { input: -1, output: 4 },
    ],
    ['of the output is in the total', [{ prompt_tokens: 3, total_tokens: 9 }], { input: 3, output: 6 }],
    ['of the input is in the total', [{ completion_tokens: 3, total_tokens: 9 }], { input: 6, output: 3 }],
    [
      'of reasoning that is larger than the output is not in it',
      [{ prompt_tokens: 3, completion_tokens: 4, completion_tokens_details: { reasoning_tokens: 10 } }],
      { input: 3, output: 14, reasoning: 10 },
    ],
    [
      'of reasoning inside the completion is not added',
      [
        {
          prompt_tokens: 3,
          completion_tokens: 14,
          total_tokens: 17,
          completion_tokens_details: { reasoning_tokens: 10 },
        },
      ],
      { input: 3, output: 14, reasoning: 10 },
    ],
    [
      'of the input is the last one with its parts, of the output the largest',
      [
        { prompt_tokens: 5, completion_tokens: 0, prompt_tokens_details: { cached_tokens: 2 } },
        { prompt_tokens: 0, completion_tokens: 9, prompt_tokens_details: null },
        { prompt_tokens: -4, completion_tokens: 3 },
        { prompt_tokens: 7, completion_tokens: -1, prompt_tokens_details: { cached_tokens: 3 } },
      ],
      { input: 7, output: 9, cached: 3 },
    ],
    ['is undefined in an empty object', [{}], undefined],
    ['is undefined if only a part of the input is known', [{ cached_tokens: 4 }], undefined],
  ])('%s', (_case, usages, expected) => {
    expect(merged(...usages.map(chat))).toEqual(expected);
  });
});
