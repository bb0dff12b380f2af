import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type PlanSlot,
  amountOf,
  planReserve,
  type CallEstimate,
  type ReserveNeed,
} from '../../../shared/billing/reservation.ts';
import { costOf, inputCost, type Price } from '../../../shared/billing/price.ts';
import { tokenPriceOf } from '../../support/prices.ts';
import { entry, quota } from './quota-fixtures.ts';

/** 1,000 nano-yuan a token in, 2,000 out. */
const perToken = tokenPriceOf(1_000_000_000n, 2_000_000_000n);
const perCall: Price = { type: 'times-billing', rule: 2, perCall: 5_000_000n };
const free: Price = { type: 'non-billing', rule: 3 };

const slot = (itemId: string, limit: number | null): PlanSlot => ({
  itemId,
  name: itemId,
  key: `${itemId}@1`,
  staleKey: `${itemId}@0`,
  limit,
  resetsAtMs: 0,
});
const need = (more: Partial<ReserveNeed> = {}, estimate: Partial<CallEstimate> = {}): ReserveNeed => ({
  id: 'call1',
  price: perToken,
  slots: [],
  estimate: {
    inputTokens: 80,
    inputTokensMax: 100,
    n: 1,
    outputTokensMax: 1_000,
    outputTokensLeast: 64,
    heldWhole: true,
    ...estimate,
  },
  key: 'key1',
  minute: 7,
  takesNothing: false,
  ...more,
});

/** An item with a fortune on which these plan entries were used once. */
const use = (...used: string[]) => quota(10n ** 9n, { plan: new Map(used.map((id) => [`${id}@1`, 1])) });

const short = (available: bigint, amount: bigint) => ({ reason: 'quota', available, need: amount });

describe('a call is paid', () => {
  it('from the balance: input at most and all that may be answered', () => {
    expect(planReserve(need(), quota(2_100_000n))).toEqual({ amount: 2_100_000n, atLeast: 2_100_000n });
  });

  it('from the balance for each of n answers', () => {
    expect(planReserve(need({}, { n: 3 }), quota(10n ** 9n))).toEqual({
      amount: 6_100_000n,
      atLeast: 6_100_000n,
    });
  });

  it('from the first plan entry that has room, before any balance', () => {
    const slots = [slot('a', 1), slot('b', 1), slot('c', null)];
    expect(planReserve(need({ slots }), use())).toEqual({ slot: slots[0], amount: 0n, atLeast: 0n });
    expect(planReserve(need({ slots }), use('a'))).toEqual({ slot: slots[1], amount: 0n, atLeast: 0n });
    expect(planReserve(need({ slots }), use('a', 'b', 'c'))).toEqual({
      slot: slots[2],
      amount: 0n,
      atLeast: 0n,
    });
  });

  it('from the balance when every entry is full', () => {
    const full = quota(10_000n, { plan: new Map([['a@1', 1]]) });
    expect(planReserve(need({ price: perCall, slots: [slot('a', 1), slot('b', 0)] }), full)).toEqual({
      amount: 5_000n,
      atLeast: 5_000n,
    });
  });

  it('with nothing when it takes nothing, whatever the plan and the balance', () => {
    expect(planReserve(need({ takesNothing: true, slots: [slot('a', 1)] }), quota(-5n))).toEqual({
      amount: 0n,
      atLeast: 0n,
    });
  });

  it('with nothing when its price is 0, even below zero', () => {
    const gift = tokenPriceOf(0n, 0n);
    expect(planReserve(need({ price: gift }), quota(-5n))).toEqual({ amount: 0n, atLeast: 0n });
    expect(planReserve(need({ price: free }), quota(-5n))).toEqual({ amount: 0n, atLeast: 0n });
  });
});

describe('a call is refused', () => {
  it('when the balance is short of a price per call, by whatever it is short', () => {
    expect(planReserve(need({ price: perCall }), quota(4_999n))).toEqual(short(4_999n, 5_000n));
  });

  it('when the balance does not cover the input and the fewest tokens', () => {
    expect(planReserve(need(), quota(227_999n))).toEqual(short(227_999n, 228_000n));
    expect(planReserve(need(), quota(-1n))).toEqual(short(-1n, 228_000n));
  });

  it('for now when running calls hold what it needs', () => {
    const open = new Map([['other', entry({ amount: 227_000n })]]);
    const held = quota(1_000n, { open });
    expect(planReserve(need(), held)).toEqual({ reason: 'reserved', available: 1_000n, need: 228_000n });
    expect(planReserve(need(), quota(999n, { open }))).toMatchObject({ reason: 'quota' });
  });

  it('when only input is paid for and the balance does not cover it: no limit could help', () => {
    const inputOnly = tokenPriceOf(1_000_000_000n, 0n);
    expect(planReserve(need({ price: inputOnly }), quota(99_999n))).toEqual(short(99_999n, 100_000n));
  });

  it('when as many calls of the account are open as can be', () => {
    const open = new Map(Array.from({ length: 100 }, (_, index) => [`x${index}`, entry()] as const));
    expect(planReserve(need({ takesNothing: true, accountConcurrency: 100 }), quota(1n, { open }))).toEqual({
      reason: 'open_entries',
    });
  });

  it("when the key has all its calls under way, and not for another key's", () => {
    const item = quota(10n ** 9n, { places: new Map([['key1', new Set(['a', 'b'])]]) });
    expect(planReserve(need({ maxConcurrency: 2 }), item)).toEqual({ reason: 'concurrency' });
    expect(planReserve(need({ maxConcurrency: 3 }), item)).toMatchObject({ amount: 2_100_000n });
    expect(planReserve(need({ maxConcurrency: 2, key: 'key2' }), item)).toMatchObject({ amount: 2_100_000n });
  });

  it('when the account has made all its calls of the minute, and not in the next', () => {
    const item = quota(10n ** 9n, { rate: { minute: 7, count: 2, tokens: 9 } });
    expect(planReserve(need({ accountRpm: 2 }), item)).toEqual({ reason: 'account_rpm' });
    expect(planReserve(need({ accountRpm: 2, minute: 6 }), item)).toEqual({ reason: 'account_rpm' });
    expect(planReserve(need({ accountRpm: 3 }), item)).toMatchObject({ amount: 2_100_000n });
    expect(planReserve(need({ accountRpm: 2, minute: 8 }), item)).toMatchObject({ amount: 2_100_000n });
  });
});

describe('a limit that the client asked for', () => {
  it('is held whole when the balance covers it', () => {
    expect(planReserve(need(), quota(2_100_000n))).toEqual({ amount: 2_100_000n, atLeast: 2_100_000n });
  });

  it('is lowered to half of a balance that does not', () => {
    expect(planReserve(need(), quota(1_000_000n))).toEqual({
      amount: 500_000n,
      atLeast: 1_000_000n,
      limitedTo: 200,
      limitedBy: 'balance',
    });
  });
});

describe('the usual limit', () => {
  const usual = { heldWhole: false };
  it('is held when that leaves half of the balance to others', () => {
    const plan = planReserve(need({}, usual), quota(4_200_000n));
    expect(plan).toEqual({ amount: 2_100_000n, atLeast: 4_200_000n });
  });

  it('is lowered to half of the balance', () => {
    const plan = planReserve(need({}, usual), quota(4_000_000n));
    expect(plan).toEqual({ amount: 2_000_000n, atLeast: 4_000_000n, limitedTo: 950, limitedBy: 'balance' });
  });

  it('is divided among n answers', () => {
    const plan = planReserve(need({}, { ...usual, n: 2 }), quota(2_000_000n));
    expect(plan).toEqual({ amount: 1_000_000n, atLeast: 2_000_000n, limitedTo: 225, limitedBy: 'balance' });
  });

  it('is lowered to the fewest tokens, and then needs no more than these cost', () => {
    const fewest = { amount: 228_000n, atLeast: 228_000n, limitedTo: 64, limitedBy: 'balance' };
    expect(planReserve(need({}, usual), quota(228_000n))).toEqual(fewest);
    expect(planReserve(need({}, usual), quota(400_000n))).toEqual(fewest);
    expect(planReserve(need({}, usual), quota(10n ** 9n), { lastTry: true })).toEqual(fewest);
  });

  it('is never lowered below what the client asked for', () => {
    const estimate = { ...usual, outputTokensMax: 20 };
    expect(planReserve(need({}, estimate), quota(140_000n))).toEqual({ amount: 140_000n, atLeast: 140_000n });
    expect(planReserve(need({}, estimate), quota(139_999n))).toMatchObject({ reason: 'quota' });
  });
});

describe("a key's budget", () => {
  const rich = quota(10n ** 9n);
  it('lowers the limit to half of what is left, as the balance does', () => {
    const plan = planReserve(need({ budgetLeft: 4_000_000n }, { heldWhole: false }), rich);
    expect(plan).toEqual({ amount: 2_000_000n, atLeast: 4_000_000n, limitedTo: 950, limitedBy: 'budget' });
  });

  it('is taken whole by a limit that the client asked for, if it covers that', () => {
    expect(planReserve(need({ budgetLeft: 2_100_000n }), rich)).toEqual({
      amount: 2_100_000n,
      atLeast: 2_100_000n,
    });
  });

  it('refuses what it does not cover, whatever the balance covers', () => {
    const plan = planReserve(need({ budgetLeft: 227_999n }), rich);
    expect(plan).toEqual({ reason: 'budget', left: 227_999n, need: 228_000n });
  });

  it('is asked for nothing by calls that a plan pays', () => {
    const slots = [slot('a', 1)];
    expect(planReserve(need({ slots, budgetLeft: 0n }), rich)).toMatchObject({ amount: 0n });
  });

  it('is not named when the balance is the smaller one', () => {
    const plan = planReserve(need({ budgetLeft: 4_000_000n }, { heldWhole: false }), quota(1_000_000n));
    expect(plan).toMatchObject({ amount: 500_000n, limitedBy: 'balance' });
  });
});

describe('what is held', () => {
  it('is never exceeded by an answer that keeps to the limit, but for the rounding of one unit', () => {
    const estimates = fc.record({
      inputTokens: fc.constant(0),
      inputTokensMax: fc.integer({ min: 0, max: 100_000 }),
      n: fc.integer({ min: 1, max: 8 }),
      outputTokensMax: fc.integer({ min: 1, max: 100_000 }),
      outputTokensLeast: fc.constantFrom(1_024, 4_096),
      heldWhole: fc.boolean(),
    });
    const pico = fc.bigInt({ min: 0n, max: 10n ** 12n });
    const balance = fc.bigInt({ min: -5n, max: 10n ** 14n });
    fc.assert(
      fc.property(estimates, pico, pico, balance, (estimate, input, output, available) => {
        const price = tokenPriceOf(input, output);
        const plan = planReserve(need({ price, estimate }), quota(available));
        const payment = 'reason' in plan ? { amount: 0n, limitedTo: 0, limitedBy: 'balance' } : plan;
        const completion_tokens = estimate.n * (payment.limitedTo ?? estimate.outputTokensMax);
        const prompt_tokens = 'reason' in plan ? 0 : estimate.inputTokensMax;
        expect(costOf(price, { prompt_tokens, completion_tokens }) - payment.amount <= 1n).toBe(true);
        expect(payment.amount === 0n || payment.amount <= available).toBe(true);
        expect('reason' in plan && available >= amountOf(price, estimate)).toBe(false);
      }),
    );
  });
});

describe('the input', () => {
  it('costs its tokens, and nothing where only calls are paid for', () => {
    expect([perToken, perCall, free].map((price) => inputCost(price, 80))).toEqual([80_000n, 0n, 0n]);
  });
});
