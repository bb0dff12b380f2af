import { describe, expect, it } from 'vitest';
import {
  checkUsage,
  type UsageBounds,
  type TextTokens,
  formatFlags,
  isImplausible,
  type UsageFlag,
} from '../../../shared/billing/usage.ts';
import type { ReportedUsage } from '../../../shared/wire/chat-response.ts';

const streamedOf = (visible: TextTokens, all = visible): UsageBounds['streamed'] => ({ visible, all });

/** Input between 80 and 120 tokens with at most 1,000 bytes, output between 40 and 60 with a limit of 500. */
const bounds: UsageBounds = {
  streamed: streamedOf({ below: 40, unbiased: 60 }),
  inputBelow: () => 80,
  inputUnbiased: () => 120,
  inputMax: () => 1_000,
  outputMax: 500,
  isCut: false,
};
const short = (reported: ReportedUsage | undefined, more: Partial<UsageBounds> = {}): unknown => {
  const { usage, flags } = checkUsage(reported, { ...bounds, ...more });
  return [usage.prompt_tokens, usage.completion_tokens, formatFlags(flags)];
};
const honest = { input: 100, output: 50 };

describe('the charged counts', () => {
  it.each<[string, ReportedUsage | undefined, unknown]>([
    ["are the upstream's counts if both are plausible", honest, [100, 50, undefined]],
    ['are estimates if none are reported', undefined, [120, 60, 'input:absent output:absent']],
    ['are estimated separately: no input', { output: 50 }, [120, 50, 'input:absent']],
    ['are estimated separately: no output', { input: 100 }, [100, 60, 'output:absent']],
    ['are not zeros', { input: 0, output: 0 }, [120, 60, 'input:low output:low']],
    ['may be as low as 0.7 of the lower estimate', { input: 56, output: 28 }, [56, 28, undefined]],
    ['are not less', { input: 55, output: 27 }, [120, 60, 'input:low output:low']],
    ['may be as high as input and limit allow', { input: 1_000, output: 500 }, [1_000, 500, undefined]],
    ['are not more', { input: 1_001, output: 501 }, [120, 60, 'input:high output:high']],
    ['are not negative', { input: -1, output: -1 }, [120, 60, 'input:impossible output:impossible']],
    [
      'are not beyond all models',
      { input: 1e12, output: 1e300 },
      [120, 60, 'input:impossible output:impossible'],
    ],
    ['are not infinite', { input: Infinity, output: NaN }, [120, 60, 'input:impossible output:impossible']],
    [
      'include the cached input if the vendor counts only the rest',
      { input: 10, output: 50, cached: 80, written: 5 },
      [95, 50, undefined],
    ],
    [
      'exclude the cached input if that explains nothing',
      { input: 10, output: 50, cached: 5_000 },
      [120, 50, 'input:low'],
    ],
  ])('%s', (_case, reported, expected) => {
    expect(short(reported)).toEqual(expected);
  });

  it('may follow the estimate beyond the byte count, because a picture has no bytes', () => {
    expect(short({ input: 3_000, output: 50 }, { inputUnbiased: () => 3_000 })).toEqual([
      3_000,
      50,
      undefined,
    ]);
  });

  it('may exceed the limit when the streamed text does, but not what the upstream reports', () => {
    const streamed = streamedOf({ below: 4_000, unbiased: 6_000 });
    expect(short({ input: 100, output: 4_800 }, { streamed })).toEqual([100, 4_800, undefined]);
    expect(short({ input: 100, output: 6_001 }, { streamed })).toEqual([100, 6_000, 'output:high']);
  });

  it('of a broken answer are the reported ones, or else the input and the streamed text', () => {
    const more = { isCut: true };
    expect(short(honest, more)).toEqual([100, 50, undefined]);
    expect(short({ input: 100, output: 1 }, more)).toEqual([100, 60, 'output:partial']);
    expect(short(undefined, more)).toEqual([120, 60, 'input:partial output:partial']);
    expect(short({ input: 100, output: 9e9 }, more)).toEqual([100, 60, 'output:impossible']);
  });

  it('may be zero for an answer without text', () => {
    expect(short({ input: 100, output: 0 }, { streamed: streamedOf({ below: 0, unbiased: 0 }) })).toEqual([
      100,
      0,
      undefined,
    ]);
  });

  it("are the vendor's count when the reasoning is shown but not counted, unless the answer broke off", () => {
    const streamed = streamedOf({ below: 10, unbiased: 15 }, { below: 90, unbiased: 120 });
    expect(short({ input: 100, output: 28, reasoning: 20 }, { streamed })).toEqual([100, 28, undefined]);
    expect(short({ input: 100, output: 6 }, { streamed })).toEqual([100, 120, 'output:low']);
    expect(short({ input: 100, output: 28 }, { streamed, isCut: true })).toEqual([
      100,
      120,
      'output:partial',
    ]);
    const beside = streamedOf({ below: 0, unbiased: 0 }, { below: 90, unbiased: 120 });
    expect(short({ input: 100, output: 0 }, { streamed: beside })).toEqual([100, 0, undefined]);
  });

  it.each<[string, ReportedUsage, unknown]>([
    ['the sum of the runs if it is plausible', { input: 600, output: 300 }, [600, 300, undefined]],
    [
      "the vendor's total of the input if the sum is implausible",
      { input: 9e9, output: 300 },
      [100, 300, undefined],
    ],
    [
      "the vendor's total of the output if the sum is implausible",
      { input: 600, output: 9e9 },
      [600, 50, undefined],
    ],
    [
      'estimates if both are implausible',
      { input: 9e9, output: 300, topLevel: { input: 3 } },
      [120, 300, 'input:impossible'],
    ],
  ])('of several runs are %s', (_case, runs, expected) => {
    expect(short({ topLevel: honest, ...runs })).toEqual(expected);
  });

  it('read the whole call only for an input above its estimate', () => {
    const inputMax = (): number => {
      throw new Error('slow');
    };
    expect(short({ input: 120, output: 50 }, { inputMax })).toEqual([120, 50, undefined]);
    expect(() => short({ input: 121, output: 50 }, { inputMax })).toThrow('slow');
  });
});

describe('the parts of the charged counts', () => {
  const details = (more: ReportedUsage): unknown => {
    const { usage, flags } = checkUsage({ ...honest, ...more }, bounds);
    return [
      usage.prompt_tokens_details,
      usage.completion_tokens_details?.reasoning_tokens,
      formatFlags(flags),
    ];
  };
  it.each<[string, ReportedUsage, unknown]>([
    ['are zero if none are reported', {}, [{ cached_tokens: 0 }, 0, undefined]],
    [
      'omit cache writes if none are reported, and keep a reported zero',
      { cached: 4, written: 0 },
      [{ cached_tokens: 4, cache_write_tokens: 0 }, 0, undefined],
    ],
    [
      'tell the lifetimes of writes apart',
      { cached: 60, written: 40, writtenForHour: 10 },
      [{ cached_tokens: 60, cache_write_tokens: 30, cache_write_1h_tokens: 10 }, 0, undefined],
    ],
    [
      'are together at most the input: reads first, writes for an hour last',
      { cached: 90, written: 40, writtenForHour: 40 },
      [{ cached_tokens: 90, cache_write_tokens: 0, cache_write_1h_tokens: 10 }, 0, undefined],
    ],
    [
      'are ignored if the cache reads exceed the input',
      { cached: 101 },
      [{ cached_tokens: 0 }, 0, 'input:cache'],
    ],
    ['are ignored if one is negative', { cached: 9, written: -1 }, [{ cached_tokens: 0 }, 0, 'input:cache']],
    ['are ignored if one is absurd', { writtenForHour: 1e12 }, [{ cached_tokens: 0 }, 0, 'input:cache']],
    ['have reasoning inside the output', { reasoning: 9e9 }, [{ cached_tokens: 0 }, 50, undefined]],
    ['have no reasoning below zero', { reasoning: -5 }, [{ cached_tokens: 0 }, 0, undefined]],
  ])('%s', (_case, more, expected) => {
    expect(details(more)).toEqual(expected);
  });

  it('are used with an estimated input if they fit it', () => {
    const split = (cached: number): unknown =>
      checkUsage({ input: -1, cached }, bounds).usage.prompt_tokens_details?.cached_tokens;
    expect([split(100), split(121)]).toEqual([100, 0]);
  });
});

describe("a channel needs the operator's attention", () => {
  it.each<[UsageFlag[], boolean, boolean]>([
    [[], true, false],
    [['output:low'], true, true],
    [['input:high'], false, true],
    [['input:partial', 'output:partial'], true, false],
    [['output:absent'], true, true],
    [['output:absent'], false, false],
    [['input:cache', 'output:absent'], false, true],
  ])('for %j, when counts are expected: %s', (flags, isExpected, expected) => {
    expect(isImplausible(flags, isExpected)).toBe(expected);
  });
});
