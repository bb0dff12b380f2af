import { describe, expect, it } from 'vitest';
import { chargeOf, costsNothing, type AnswerOutcome } from '../../../shared/billing/usage.ts';
import type { Price } from '../../../shared/billing/price.ts';
import { tokenPriceOf } from '../../support/prices.ts';

/** 1 and 2 nano-yuan a token. */
const perToken = tokenPriceOf(1_000_000n, 2_000_000n);
const perCall: Price = { type: 'times-billing', rule: 2, perCall: 50_000n };
const free: Price = { type: 'non-billing', rule: 3 };

const outcome = (more: Partial<AnswerOutcome>): AnswerOutcome => ({
  failed: false,
  anyContent: true,
  usage: { prompt_tokens: 100, completion_tokens: 10 },
  ...more,
});
const nothing = { prompt_tokens: 0, completion_tokens: 0 };

describe('what an answer costs by tokens, per call, and free of charge', () => {
  const cases: [string, AnswerOutcome, bigint, bigint][] = [
    ['a whole answer', outcome({}), 120n, 50n],
    ['a whole answer that the upstream calls free', outcome({ usage: nothing }), 0n, 50n],
    ['a whole answer without a word in it', outcome({ anyContent: false }), 120n, 0n],
    ['a failure before any output', outcome({ failed: true, anyContent: false }), 0n, 0n],
    ['an answer that was cut', outcome({ failed: true }), 120n, 50n],
    ['an answer whose client left before any of it', outcome({ leftEarly: true }), 120n, 0n],
  ];
  it.each(cases)('%s', (_case, ending, byTokens, byCall) => {
    expect([perToken, perCall, free].map((price) => chargeOf(price, ending))).toEqual([byTokens, byCall, 0n]);
  });

  it('counts as not made only when it failed and nobody saw anything', () => {
    const made = [true, false].flatMap((failed) =>
      [true, false].map((anyContent) => costsNothing(outcome({ failed, anyContent }))),
    );
    expect(made).toEqual([false, true, false, false]);
  });
});
