import {
  computeInputCost,
  computeCost,
  applyServiceTier,
  findTier,
  type Price,
} from '../../shared/billing/price.ts';
import { partCountsOf } from '../../shared/wire/chat-response.ts';
import { withoutLimit } from './upstream.ts';
import { changed, onStore, type Mutation } from './mutations.ts';
import { findAgreedPrice } from '../../shared/billing/tariff.ts';
import { planQuery, type BillableCall } from '../../shared/relay/money/call-costs.ts';
import type { ReservationRequest } from '../../shared/relay/money/open-reservation.ts';
import { listPlanSlots, type ReserveNeed } from '../../shared/billing/reservation.ts';
import type { CloseRecord } from '../../shared/billing/quota-item.ts';

const smooth = { busy: 0, dropped: 0, lost: 0, late: 0 };
const calm = { crash: 0, freeze: 0, freezeMs: 0 };
const easy = { roughness: smooth, hazards: calm };
const sleepy = { hazards: { crash: 0, freeze: 0.1, freezeMs: 900_000 } };
const deaf = { hazards: calm, roughness: { busy: 0, dropped: 0, lost: 0.25, late: 0.25 } };
const chargedWrong = /is charged \d+, the oracle says/;

type Charges = Parameters<NonNullable<Mutation['charges']>>[0];

/** Multiplies every price. */
const priced =
  (times: number) =>
  (rows: Charges): Charges =>
    rows.map((row) => ({
      ...row,
      input: row.input * times,
      output: row.output * times,
      cached_input: row.cached_input && row.cached_input * times,
      cache_write: row.cache_write && row.cache_write * times,
      cache_write_1h: row.cache_write_1h && row.cache_write_1h * times,
    }));

/** Prices the call by the tier in its close record. */
const priceOfRecord = (call: BillableCall, { service_tier: tier }: CloseRecord): Price =>
  applyServiceTier(findAgreedPrice(call.tariff, call.model.base), tier);

const limitless =
  (dialect: string): NonNullable<Mutation['body']> =>
  (name, body) =>
    name === dialect ? withoutLimit(body) : body;

const tokensOf = ({ prompt_tokens = 0, completion_tokens = 0, ...record }: CloseRecord) => ({
  prompt_tokens,
  completion_tokens,
  prompt_tokens_details: { cached_tokens: 0, ...partCountsOf(record) },
});

function byUncached(price: Price, record: CloseRecord): bigint {
  if (price.type !== 'token-billing' || record.charge === 0n) return record.charge;
  const tokens = tokensOf(record);
  const uncached = tokens.prompt_tokens - tokens.prompt_tokens_details.cached_tokens;
  return computeCost({ ...price, tiers: [findTier(price.tiers, uncached)] }, tokens);
}

const swapped = ({ estimate, ...need }: ReserveNeed): ReserveNeed => ({
  ...need,
  estimate: {
    ...estimate,
    inputTokens: estimate.inputTokensMax,
    inputTokensMax: estimate.inputTokens,
  },
});

function withSlotsOfFirst(request: ReservationRequest, call: BillableCall | undefined): ReservationRequest {
  const slots = call && listPlanSlots({ ...planQuery(call), model: call.model.base });
  return { ...request, need: { ...request.need, slots: slots ?? request.need.slots } };
}

const ofTheStore = {
  no_balance_check: { what: 'a reserve does not test the balance', noticed: /is paid by a sum below zero/ },
  no_duplicate_guard: {
    what: 'a reserve does not test whether its id is open',
    noticed: /was opened while it was open|is off by|what is open sums/,
  },
  no_settle_condition: {
    what: 'a close does not test whether its reservation is open',
    noticed: /was closed without being open/,
  },
  early_sweep: {
    what: 'the sweeper does not wait until nobody can come back',
    noticed: /came late without standing still|expired while|was charged late/,
  },
  ledger_put_not_idempotent: {
    what: 'a ledger row that comes again is booked again',
    noticed: /the ledger|budget/,
  },
  grant_marker_ignored: {
    what: 'a grant does not test whether it was applied',
    noticed: /granted sums to|has not got every grant once/,
  },
  no_tombstone: {
    what: 'a reserve of unknown outcome is not guarded against its late arrival',
    // A late reserve on a plan slot makes its call count twice.
    noticed: /was refused and charged|of the budget|is charged \d+ again|@.* sums to/,
    kind: deaf,
  },
  no_entry_check: {
    what: 'a close does not test what is open under its id',
    noticed: /but a tombstone is not|was charged 2 times|is charged/,
    firstSeed: 9,
    kind: deaf,
  },
  slot_not_released: { what: 'a failed call keeps its plan slot', noticed: /@.* sums to|@.* counts/ },
  no_place_freed: { what: "a close does not free the place of a key's limit", noticed: /a place of/ },
  no_slot_limit: {
    what: 'a reserve does not test whether the plan slot is full',
    noticed: /is call .* on/,
    firstSeed: 13,
  },
  split_with_open: {
    what: 'a split takes what is open along to another part',
    noticed: /without a (close|reserve)/,
    kind: { ...easy, bursts: true },
  },
  late_twice: {
    what: 'a late settle does not test whether it was booked',
    noticed: /was charged late twice/,
    kind: { ...sleepy, roughness: { ...smooth, lost: 0.4 } },
  },
  overdraft_served: {
    what: 'a reserve does not test whether its part says that another one may owe',
    noticed: /is paid by a sum below zero/,
    firstSeed: 77,
    kind: { ...easy, bursts: true, corrections: 12, background: 0 },
  },
  no_overdraft: {
    what: 'a part goes below zero, and the others do not say so',
    noticed: /below zero/,
    firstSeed: 8,
    kind: { ...easy, bursts: true, corrections: 5 },
  },
} satisfies Record<string, Mutation>;

const ofPrices = {
  cached_twice: {
    what: 'cached input is charged as input, too',
    noticed: chargedWrong,
    outcome: (outcome) => {
      const { usage } = outcome;
      const cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
      return { ...outcome, usage: { ...usage, prompt_tokens: usage.prompt_tokens + cached } };
    },
  },
  tier_by_uncached: {
    what: 'the tier goes by the input that no cache had',
    noticed: chargedWrong,
    reservations: changed({
      record: (record, _reservation, call) => ({
        ...record,
        charge: byUncached(priceOfRecord(call, record), record),
      }),
    }),
  },
  unit_times_1000: {
    what: 'a price per million tokens is taken as one per thousand',
    noticed: chargedWrong,
    kind: { grantFactor: 1_000n },
    charges: priced(1_000),
  },
  double_price: { what: 'every price is doubled', noticed: chargedWrong, charges: priced(2) },
  estimator_swapped: {
    what: 'the unbiased estimate is reserved, and the one from above is charged',
    noticed: /from an honest upstream|expired call .* is charged/,
    reservations: changed({
      request: ({ need, entry, ...request }) => ({
        ...request,
        need: swapped(need),
        entry: { ...entry, input: computeInputCost(need.price, need.estimate.inputTokensMax) },
      }),
    }),
  },
  failed_charged: {
    what: 'a call that failed before any content is charged',
    noticed: /but the upstream gave nothing/,
    outcome: (outcome) => ({ ...outcome, failed: false, anyContent: true }),
  },
  official_charged: {
    what: 'an official call is paid like any other',
    noticed: /but nothing is to pay|is charged|has a cost of/,
    reservations: changed({
      request: ({ need, entry, ...request }) => ({
        ...request,
        need: { ...need, reservesNothing: false },
        entry: { ...entry, official: false },
      }),
    }),
  },
  search_unheld: {
    what: 'a reserve does not hold the price of a search',
    noticed: /which doesn't cover its search/,
    reservations: changed({
      request: ({ need, ...request }) => ({ ...request, need: { ...need, searchPrice: undefined } }),
    }),
  },
  search_of_answers: {
    what: 'a search is charged only where there was an answer',
    noticed: chargedWrong,
    searched: (searched, { failed, anyContent }) => searched && (!failed || anyContent),
  },
  search_expired: {
    what: 'a call that crashed is not charged its search',
    noticed: chargedWrong,
    firstSeed: 16,
    kind: { ...sleepy, requestSeconds: 150 },
    reservations: changed({
      request: ({ entry, ...request }) => ({ ...request, entry: { ...entry, searchPrice: undefined } }),
    }),
  },
  plan_charged: {
    what: 'a call that counts on a plan is charged, too',
    noticed: chargedWrong,
    reservations: changed({
      record: (record, { entry }, call) =>
        entry.slot === ''
          ? record
          : { ...record, charge: computeCost(priceOfRecord(call, record), tokensOf(record)) },
    }),
  },
} satisfies Record<string, Mutation>;

const ofServiceTiers = {
  tier_as_asked: {
    what: 'a call is charged by the service tier that it asked for, whichever served it',
    noticed: chargedWrong,
    tier: (sent, reported) => sent ?? reported,
  },
  tier_as_told: {
    what: 'a call is charged by whatever service tier its upstream names',
    noticed: chargedWrong,
    tier: (sent, reported) => reported ?? sent,
  },
  dearer_tier_on_plan: {
    what: 'a plan covers a call in a dearer service tier, too',
    noticed: /in the dearer service tier/,
    firstSeed: 9,
    reservations: (ports, call) =>
      changed({
        request: (request) => (call()?.alias ? request : withSlotsOfFirst(request, call())),
      })(ports, call),
  },
  tier_not_held: {
    what: 'a call holds the price of the standard tier, whatever it asks for',
    noticed: /from an honest upstream/,
    firstSeed: 16,
    reservations: changed({
      request: ({ need, ...request }) => ({
        ...request,
        need: { ...need, price: applyServiceTier(need.price, undefined) },
      }),
    }),
  },
} satisfies Record<string, Mutation>;

const ofAliases = {
  alias_by_first_price: {
    what: 'a call to an alias is charged by the price of the first model, whichever answered',
    noticed: chargedWrong,
    answered: (_model, call) => call.model.base,
  },
  alias_holds_first_alone: {
    what: 'a call to an alias holds what its first model may cost, and nothing for the others',
    noticed: /from an honest upstream|but the upstream is sent/,
    reservations: changed({
      request: ({ need: { alternatives: _others, ...need }, ...request }) => ({ ...request, need }),
    }),
  },
  alias_on_plan_of_first: {
    what: 'a plan that covers the first model of an alias pays for the others, too',
    noticed: /on the plan entry/,
    reservations: (ports, call) =>
      changed({ request: (request) => withSlotsOfFirst(request, call()) })(ports, call),
  },
} satisfies Record<string, Mutation>;

const ofCalls = {
  lapsed_lease: {
    what: 'a lease is not renewed while its call runs',
    noticed: /expired while it ran/,
    kind: { ...easy, requestSeconds: 400 },
    reservations: onStore(() => ({ renew: () => Promise.resolve({ done: true }) })),
  },
  late_dropped: {
    what: 'a settle that comes late is dropped',
    noticed: /reported a charge of/,
    kind: sleepy,
    reservations: onStore(() => ({ chargeLate: () => Promise.resolve() })),
  },
  budget_without_hold: {
    what: 'a call holds nothing of its budget',
    noticed: /counts \d+ of the budget/,
    holdsNoBudget: true,
  },
  budget_by_tag_forgotten: {
    what: 'a call counts on the budget of its key alone',
    noticed: /counts on 0 budgets by tag/,
    reservations: changed({
      request: ({ budgets = [], ...request }) => ({ ...request, budgets: budgets.filter(({ of }) => !of) }),
    }),
  },
  budget_count_lost: {
    what: 'what a call did not use of its budget stays held',
    noticed: /o[fn] the budget/,
    losesBudgetCount: true,
  },
  chat_limit_not_sent: {
    what: 'a lowered limit does not go to an upstream that speaks chat',
    noticed: /tokens in chat, but the upstream is sent|from an honest upstream/,
    body: limitless('chat'),
  },
  responses_limit_not_sent: {
    what: 'a lowered limit does not go to an upstream that speaks responses',
    noticed: /tokens in responses, but the upstream is sent|from an honest upstream/,
    body: limitless('responses'),
  },
  messages_limit_not_sent: {
    what: 'a lowered limit does not go to an upstream that speaks messages',
    noticed: /tokens in messages, but the upstream is sent|from an honest upstream/,
    body: limitless('messages'),
  },
  code_twice: {
    what: 'a redemption does not test whether its code is redeemed',
    noticed: /is redeemed again/,
    kind: { credits: true },
    redeemsTwice: true,
  },
  no_reserve: {
    what: 'a run asks the upstream, though its reserve was never written',
    noticed: /but nothing is open for it/,
    kind: { ...easy, background: 1 },
  },
  runs_twice: {
    what: 'each delivery of an event runs its response',
    noticed:
      /was charged 2 times|is charged \d+ again|was closed without being open|is off by|@.* sums to|settled sums|is charged late|reported a charge of/,
    kind: { ...easy, background: 1 },
    runsTwice: true,
  },
  sweeper_refunds_all: {
    what: 'the sweeper releases all that a crashed call held, its input included',
    noticed: /expired call .* is charged 0/,
    kind: { roughness: smooth, hazards: { crash: 0.1, freeze: 0, freezeMs: 0 } },
    sweeps: (close) => (write) => close({ ...write, closeRecord: { ...write.closeRecord, charge: 0n } }),
  },
} satisfies Record<string, Mutation>;

/**
 * Ways to break the product. Each removes one safeguard, and the watch must notice; otherwise the watch proves nothing
 * about the intact product.
 */
const all = { ...ofTheStore, ...ofPrices, ...ofServiceTiers, ...ofAliases, ...ofCalls };
export type Mutant = keyof typeof all;
export const mutants: Record<Mutant, Mutation> = all;
