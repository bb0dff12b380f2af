import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type PlanSlot,
  computeReserveAmount,
  findUncountedLeases,
  planReservation,
  type CallEstimate,
  type ReserveNeed,
} from '../../../shared/billing/reservation.ts';
import { computeCost, type Price } from '../../../shared/billing/price.ts';
import { tokenPriceOf } from '../../support/prices.ts';
import type { QuotaItem } from '../../../shared/billing/quota-item.ts';
import { entry, quota } from './quota-fixtures.ts';

/** 1,000 nano-yuan per input token, 2,000 per output token. */
const perToken = tokenPriceOf(1_000_000_000n, 2_000_000_000n);
const perCall: Price = { type: 'times-billing', rule: 2, perCall: 5_000_000n };
const free: Price = { type: 'non-billing', rule: 3 };
const inputOnly = tokenPriceOf(1_000_000_000n, 0n);

const slot = (itemId: string, limit: number | null): PlanSlot => ({
  itemId,
  name: itemId,
  key: `${itemId}@1`,
  staleKey: `${itemId}@0`,
  limit,
  resetsAtMs: 0,
});
const usual = {
  inputTokens: 80,
  inputTokensMax: 100,
  n: 1,
  outputTokensMax: 1_000,
  outputTokensLeast: 64,
  reservesFully: true,
};
const need = (more: Partial<ReserveNeed> = {}, estimate: Partial<CallEstimate> = {}): ReserveNeed => ({
  id: 'call1',
  price: perToken,
  slots: [],
  estimate: { ...usual, ...estimate },
  key: 'key1',
  nowMs: 7 * 60_000,
  reservesNothing: false,
  ...more,
});
const lowered = (estimate: Partial<CallEstimate> = {}) => need({}, { reservesFully: false, ...estimate });

const fortune = 10n ** 9n;
const rich = quota(fortune);
/** An item with a large balance on which each of these plan entries was used once. */
const use = (...used: string[]) => quota(fortune, { plan: new Map(used.map((id) => [`${id}@1`, 1])) });
const opened = (count: number, amount = 0n) =>
  new Map(Array.from({ length: count }, (_, index) => [`x${index}`, entry({ amount })] as const));
const paid = (amount: bigint, balanceNeeded = amount) => ({ amount, balanceNeeded });
const short = (available: bigint, amount: bigint) => ({ reason: 'quota', available, need: amount });
const slots = [slot('a', 1), slot('b', 1), slot('c', null)];
const full = { price: perCall, slots: [slot('a', 1), slot('b', 0)] };
const least = { ...paid(228_000n), limitedTo: 64, limitedBy: 'balance' };
const places = new Map([['key1', new Set(['a', 'b'])]]);
const minute = { rate: { minute: 7, count: 2, tokens: 9 } };
const gift = tokenPriceOf(0n, 0n);
const budget = (budgetLeft: bigint, reservesFully = false) => need({ budgetLeft }, { reservesFully });

describe('a call is paid', () => {
  it.each<[string, ReserveNeed, QuotaItem, object]>([
    ['input at most and all that may be answered', need(), quota(2_100_000n), paid(2_100_000n)],
    ['each of n answers', need({}, { n: 3 }), rich, paid(6_100_000n)],
    ['from the first plan entry that has room', need({ slots }), use(), { slot: slots[0], ...paid(0n) }],
    ['from the next one', need({ slots }), use('a'), { slot: slots[1], ...paid(0n) }],
    ['from one without a limit', need({ slots }), use('a', 'b', 'c'), { slot: slots[2], ...paid(0n) }],
    ['from the balance when every entry is full', need(full), use('a'), paid(5_000n)],
    ['with nothing if it reserves nothing', need({ reservesNothing: true, slots }), quota(-5n), paid(0n)],
    ['with nothing at a price of 0, even below zero', need({ price: gift }), quota(-5n), paid(0n)],
    ['with nothing when it is free', need({ price: free }), quota(-5n), paid(0n)],
    [
      'beside fewer calls of the key',
      need({ maxConcurrency: 3 }),
      quota(fortune, { permits: places }),
      paid(2_100_000n),
    ],
    [
      'beside others of another key',
      need({ maxConcurrency: 2, key: 'key2' }),
      quota(fortune, { permits: places }),
      paid(2_100_000n),
    ],
    ['in a minute with room', need({ accountRpm: 3 }), quota(fortune, minute), paid(2_100_000n)],
    [
      'in the next minute',
      need({ accountRpm: 2, nowMs: 8 * 60_000 }),
      quota(fortune, minute),
      paid(2_100_000n),
    ],
  ])('%s', (_case, asked, item, payment) => {
    expect(planReservation(asked, item)).toEqual(payment);
  });
});

describe('a call is rejected', () => {
  it.each<[string, ReserveNeed, QuotaItem, object]>([
    ['short of a price per call', need({ price: perCall }), quota(4_999n), short(4_999n, 5_000n)],
    ['short of the input and the fewest tokens', need(), quota(227_999n), short(227_999n, 228_000n)],
    ['below zero', need(), quota(-1n), short(-1n, 228_000n)],
    [
      'short of the input, when only the input is charged',
      need({ price: inputOnly }),
      quota(99_999n),
      short(99_999n, 100_000n),
    ],
    [
      'temporarily when running calls reserve the amount that it needs',
      need(),
      quota(1_000n, { open: opened(1, 227_000n) }),
      { reason: 'reserved', available: 1_000n, need: 228_000n },
    ],
    ['for good when they do not', need(), quota(999n, { open: opened(1, 227_000n) }), short(999n, 228_000n)],
    [
      'when the account has the maximum of open calls',
      need({ reservesNothing: true, accountConcurrency: 100, nowMs: entry().until * 1000 }),
      quota(1n, { open: opened(100) }),
      { reason: 'open_entries' },
    ],
    [
      'beside all calls of the key',
      need({ maxConcurrency: 2 }),
      quota(fortune, { permits: places }),
      { reason: 'concurrency' },
    ],
    [
      'after all calls of the minute',
      need({ accountRpm: 2 }),
      quota(fortune, minute),
      { reason: 'account_rpm' },
    ],
    [
      'in a minute that is over',
      need({ accountRpm: 2, nowMs: 7 * 60_000 - 1 }),
      quota(fortune, minute),
      { reason: 'account_rpm' },
    ],
    [
      'after all tokens of the minute',
      need({ accountTpm: 9 }),
      quota(fortune, minute),
      { reason: 'account_tpm' },
    ],
    ['beyond its budget', budget(227_999n), rich, { reason: 'budget', left: 227_999n, need: 228_000n }],
  ])('%s', (_case, asked, item, refusal) => {
    expect(planReservation(asked, item)).toEqual(refusal);
  });
});

describe('crashed calls', () => {
  const nowMs = entry().until * 1000 + 60_000;
  const open = new Map([...opened(150), ['own', entry()]]);
  const item = quota(fortune, { open, permits: new Map([['key1', new Set(['own'])]]) });

  it.each<[string, Partial<ReserveNeed>, number]>([
    ['the key', { maxConcurrency: 1 }, 1],
    ['the account', { accountConcurrency: 52 }, 100],
    ['both', { maxConcurrency: 1, accountConcurrency: 52 }, 100],
  ])('of other keys take no room from the calls of the key when %s has a limit', (_whose, limits, count) => {
    const asked = need({ ...limits, nowMs });
    const { leases: lapsed, countOfKey: ofKey } = findUncountedLeases(asked, item);
    expect([...lapsed.keys()].at(0)).toBe('own');
    expect({ count: lapsed.size, ofKey }).toEqual({ count, ofKey: 1 });
    expect(planReservation(asked, item)).toEqual(paid(2_100_000n));
  });
});

describe('calls that wait for hours at a vendor', () => {
  it('do not count towards concurrency limits', () => {
    const nowMs = entry().until * 1000 - 3_600_000;
    const running = { ...entry(), until: nowMs / 1000 + 60 };
    const open = new Map([...opened(3), ['running', running] as const]);
    const item = quota(fortune, { open, permits: new Map([['key1', new Set(open.keys())]]) });
    const asked = (limits: Partial<ReserveNeed>) => planReservation(need({ ...limits, nowMs }), item);
    expect(asked({ maxConcurrency: 2, accountConcurrency: 2 })).toEqual(paid(2_100_000n));
    expect(asked({ maxConcurrency: 1 })).toEqual({ reason: 'concurrency' });
    expect(asked({ accountConcurrency: 1 })).toEqual({ reason: 'open_entries' });
  });

  it('are limited to 100, so that one more does not block the others', () => {
    const nowMs = entry().until * 1000 - 3_600_000;
    const asked = (count: number, limits: Partial<ReserveNeed>) => {
      const open = new Map(opened(count));
      const item = quota(fortune, { open, permits: new Map([['key1', new Set(open.keys())]]) });
      return planReservation(need({ ...limits, nowMs }), item);
    };
    for (const limits of [{ maxConcurrency: 1 }, { accountConcurrency: 1 }]) {
      expect(asked(99, { ...limits, waits: true })).toEqual(paid(2_100_000n));
      expect(asked(100, { ...limits, waits: true })).toEqual({ reason: 'account_waiting' });
      expect(asked(100, limits)).toEqual(paid(2_100_000n));
    }
  });
});

describe('the output limit from the client or the default', () => {
  it.each<[string, ReserveNeed, bigint, object]>([
    [
      'is lowered to half of a balance that does not cover it',
      need(),
      1_000_000n,
      { ...paid(500_000n, 1_000_000n), limitedTo: 200, limitedBy: 'balance' },
    ],
    [
      'is reserved when that leaves half of the balance to others',
      lowered(),
      4_200_000n,
      paid(2_100_000n, 4_200_000n),
    ],
    [
      'is lowered to half of the balance',
      lowered(),
      4_000_000n,
      { ...paid(2_000_000n, 4_000_000n), limitedTo: 950, limitedBy: 'balance' },
    ],
    [
      'is divided among n answers',
      lowered({ n: 2 }),
      2_000_000n,
      { ...paid(1_000_000n, 2_000_000n), limitedTo: 225, limitedBy: 'balance' },
    ],
    ['is lowered to the fewest tokens', lowered(), 228_000n, least],
    ['and then needs no more than their cost', lowered(), 400_000n, least],
    ["is never lowered below the client's limit", lowered({ outputTokensMax: 20 }), 140_000n, paid(140_000n)],
    [
      'is lowered by a budget, as by the balance',
      budget(4_000_000n),
      fortune,
      { ...paid(2_000_000n, 4_000_000n), limitedTo: 950, limitedBy: 'budget' },
    ],
    ['uses up a budget that covers it', budget(2_100_000n, true), fortune, paid(2_100_000n)],
    [
      'names the balance when that is the smaller one',
      budget(4_000_000n),
      1_000_000n,
      { ...paid(500_000n, 1_000_000n), limitedTo: 200, limitedBy: 'balance' },
    ],
    [
      'asks the budget for nothing that a plan pays',
      need({ slots, budgetLeft: 0n }),
      fortune,
      { slot: slots[0], ...paid(0n) },
    ],
  ])('%s', (_case, asked, available, payment) => {
    expect(planReservation(asked, quota(available))).toEqual(payment);
  });

  it('is the smallest at the last try', () => {
    expect(planReservation(lowered(), rich, { lastTry: true })).toEqual(least);
  });
});

describe('the reserved amount', () => {
  it('covers every answer within the limit, except for the rounding of one unit', () => {
    const estimates = fc.record({
      inputTokens: fc.constant(0),
      inputTokensMax: fc.integer({ min: 0, max: 100_000 }),
      n: fc.integer({ min: 1, max: 8 }),
      outputTokensMax: fc.integer({ min: 1, max: 100_000 }),
      outputTokensLeast: fc.constantFrom(1_024, 4_096),
      reservesFully: fc.boolean(),
    });
    const pico = fc.bigInt({ min: 0n, max: 10n ** 12n });
    const balance = fc.bigInt({ min: -5n, max: 10n ** 14n });
    fc.assert(
      fc.property(estimates, pico, pico, balance, (estimate, input, output, available) => {
        const price = tokenPriceOf(input, output);
        const plan = planReservation(need({ price, estimate }), quota(available));
        const payment = 'reason' in plan ? { amount: 0n, limitedTo: 0, limitedBy: 'balance' } : plan;
        const completion_tokens = estimate.n * (payment.limitedTo ?? estimate.outputTokensMax);
        const prompt_tokens = 'reason' in plan ? 0 : estimate.inputTokensMax;
        expect(computeCost(price, { prompt_tokens, completion_tokens }) - payment.amount <= 1n).toBe(true);
        expect(payment.amount === 0n || payment.amount <= available).toBe(true);
        expect('reason' in plan && available >= computeReserveAmount(price, estimate)).toBe(false);
      }),
    );
  });
});
