/** View: what an edit of prices or channels would have made of the calls of some days, by public model. Pure. */
import { larger, smaller, type NanoYuan, divideHalfUp } from '../../billing/amount.ts';
import {
  priceOf,
  tierFor,
  type Price,
  type Rates,
  type TokenKind,
  type Tiers,
  productsOf,
  type Tier,
  type TokenCounts,
  pricedModels,
  tiersOf,
  toPico,
  buyingPriceOf,
  type BuyingPrice,
} from '../../billing/price.ts';
import { compareCodeUnits, canonicalJson } from '../../wire/json.ts';
import type { ServedDay } from '../operator-ports.ts';
import type { DailyFigures } from '../../billing/daily-figures.ts';
import { needsPrice, type Snapshot } from '../../config/snapshot.ts';
import { servedKey, servedOf } from '../../billing/daily-keys.ts';
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import { upstreamModel } from '../../upstreams/types/channel-quirks.ts';

// Amounts between a smallest and a largest, in nano-yuan. Pure.

export interface Bounds {
  low: NanoYuan;
  high: NanoYuan;
}

export const exactly = (amount: NanoYuan): Bounds => ({ low: amount, high: amount });
const nothing = exactly(0n);

const plus = (a: Bounds, b: Bounds): Bounds => ({ low: a.low + b.low, high: a.high + b.high });
const minus = (a: Bounds, b: Bounds): Bounds => ({ low: a.low - b.high, high: a.high - b.low });

/** What both allow; the first where they exclude each other. */
function both(a: Bounds, b: Bounds): Bounds {
  const met = { low: larger(a.low, b.low), high: smaller(a.high, b.high) };
  return met.low <= met.high ? met : a;
}

/** One of these, and nobody knows which. Must not be empty. */
const oneOf = (all: readonly Bounds[]): Bounds => ({
  low: all.map(({ low }) => low).reduce(smaller),
  high: all.map(({ high }) => high).reduce(larger),
});

export const middleOf = ({ low, high }: Bounds): NanoYuan => (low + high) / 2n;

const isSameAs = (a: Bounds, b: Bounds): boolean => a.low === b.low && a.high === b.high;

/** How far the truth may be from the middle, in percent of it, rounded up to hundredths. 0: exact; undefined: the middle is 0. */
export function withinPercent({ low, high }: Bounds): number | undefined {
  if (low === high) return 0;
  const middle = low + high;
  if (middle === 0n) return undefined;
  const size = middle < 0n ? -middle : middle;
  return Number(((high - low) * 10_000n + size - 1n) / size) / 100;
}

/** `exact`, or by how much the worst of them may be wrong. */
export function certaintyOf(...all: Bounds[]): string {
  const within = all.map(withinPercent);
  if (within.every((percent) => percent === 0)) return 'exact';
  const [worst] = within.toSorted((a, b) => (b ?? Infinity) - (a ?? Infinity));
  return worst === undefined ? 'unknown' : `within ${worst} %`;
}

interface Edit {
  before: EditedConfig;
  after: EditedConfig;
  served: readonly ServedDay[];
  /** Whether the price of before was that of all these days. */
  isKnown: (model: string) => boolean;
  /** The prices of then are compared. */
  atMs: number;
}

export interface ModelEffect {
  model: string;
  calls: number;
  /** What was charged on these days. */
  charged: NanoYuan;
  revenue: { before: Bounds; after: Bounds };
  bought: { before: Bounds; after: Bounds };
  margin: { before: Bounds; after: Bounds };
  /** Calls whose cost no row says: the margin is without it. */
  unknownCostCalls: number;
  isPriceChanged: boolean;
  /** Nobody serves it any more, so there are no such calls. */
  isLost: boolean;
}

export interface EditEffects {
  /** Those that were called, sorted by name. */
  models: ModelEffect[];
  total: Pick<ModelEffect, 'calls' | 'charged' | 'revenue' | 'bought' | 'margin' | 'unknownCostCalls'>;
  /** Models that lose their last channel. */
  lost: string[];
  /** Models that cost something before and nothing after. */
  free: string[];
  /** Models that are served and that no rule prices after the edit, and were not so before. */
  unpriced: string[];
}

export function editEffects(edit: Edit): EditEffects {
  const { before, after, served, atMs } = edit;
  const days = Map.groupBy(served, ({ model }) => model);
  const models = [...days]
    .map(([model, items]) => modelEffect(edit, model, items))
    .toSorted((a, b) => compareCodeUnits(a.model, b.model));
  const lost = before.models.filter((model) => !after.models.includes(model));
  const unpriced = unpricedOf(after, atMs).filter((model) => !unpricedOf(before, atMs).includes(model));
  const wasFree = (model: string): boolean => !before.models.includes(model) || isFreeIn(before, model, atMs);
  const free = after.models.filter((model) => isFreeIn(after, model, atMs) && !wasFree(model));
  return { models, total: totalOf(models), lost, free, unpriced };
}

function modelEffect({ before, after, isKnown, atMs }: Edit, model: string, items: ServedDay[]): ModelEffect {
  const prices = {
    before: priceOf(before.charges, model, atMs),
    after: priceOf(after.charges, model, atMs),
    isKnown: isKnown(model),
  };
  const isLost = !after.models.includes(model) && before.models.includes(model);
  const isRefused = isLost || (!isOffered(after, model, atMs) && isOffered(before, model, atMs));
  const sums = { revenue: noChange, bought: noChange };
  let calls = 0;
  let charged = 0n;
  let unknownCostCalls = 0;
  for (const { channel, figures } of items) {
    const revenue = revenueAround(prices, figures);
    const { unknownCalls, ...bought } = boughtAround(
      { model, channel, figures },
      { before: before.channels, after: after.channels },
    );
    sums.revenue = added(sums.revenue, isRefused ? { ...revenue, after: nothing } : revenue);
    sums.bought = added(sums.bought, isRefused ? { ...bought, after: nothing } : bought);
    calls += figures.counts.calls ?? 0;
    charged += figures.amounts.charged ?? 0n;
    unknownCostCalls += isRefused ? 0 : unknownCalls;
  }
  const isPriceChanged = !isSamePrice(prices.before, prices.after);
  return { model, calls, charged, ...sums, margin: marginOf(sums), unknownCostCalls, isPriceChanged, isLost };
}

interface Around {
  before: Bounds;
  after: Bounds;
}
const noChange: Around = { before: nothing, after: nothing };

const added = (a: Around, b: Around): Around => ({
  before: plus(a.before, b.before),
  after: plus(a.after, b.after),
});

const marginOf = ({ revenue, bought }: { revenue: Around; bought: Around }): Around => ({
  before: minus(revenue.before, bought.before),
  after: minus(revenue.after, bought.after),
});

function totalOf(models: readonly ModelEffect[]): EditEffects['total'] {
  const total = { calls: 0, charged: 0n, revenue: noChange, bought: noChange, unknownCostCalls: 0 };
  for (const { calls, charged, revenue, bought, unknownCostCalls } of models) {
    total.calls += calls;
    total.charged += charged;
    total.revenue = added(total.revenue, revenue);
    total.bought = added(total.bought, bought);
    total.unknownCostCalls += unknownCostCalls;
  }
  return { ...total, margin: marginOf(total) };
}

/** Whether the edit does anything to the calls of a model. */
export const hasEffect = ({ revenue, bought, isLost, isPriceChanged }: ModelEffect): boolean =>
  isLost ||
  isPriceChanged ||
  !isSameAs(revenue.before, revenue.after) ||
  !isSameAs(bought.before, bought.after);

// What calls whose charges are known would have cost at another price. Pure.

interface PricesAround {
  before: Price;
  after: Price;
  /** The price was `before` on all of these days, so what was charged is what it comes to. */
  isKnown: boolean;
}

interface RevenueAround {
  before: Bounds;
  after: Bounds;
}

/** Apart from the id of their rules. */
export const isSamePrice = (a: Price, b: Price): boolean => contentOf(a) === contentOf(b);

const contentOf = (price: Price): string =>
  JSON.stringify({ ...price, rule: 0 }, (_, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  );

const isFree = (price: Price): boolean =>
  price.type === 'non-billing' ||
  (price.type === 'times-billing'
    ? price.perCall === 0n
    : price.tiers.every(({ rates }) => Object.values(rates).every((rate) => rate === 0n)));

function revenueAround({ before, after, isKnown }: PricesAround, figures: DailyFigures): RevenueAround {
  const usage = paidUsage(figures);
  const charged = figures.amounts.charged ?? 0n;
  const known = isKnown ? exactly(charged) : chargeBounds(before, usage);
  if (isSamePrice(before, after)) return { before: known, after: known };
  const paidCalls =
    isKnown && before.type === 'times-billing' ? callsPaid(before.perCall, charged) : undefined;
  const computed = chargeBounds(after, usage, paidCalls);
  const isAnyLength = unfinishedCalls(figures) > 0;
  const factors = isKnown ? factorsOf({ before, after, usage, isAnyLength }) : undefined;
  if (!factors) return { before: known, after: computed };
  const expired = isAnyLength ? expiredAtMost(before, usage, charged) : 0n;
  const withExpired = { low: computed.low, high: computed.high + times(expired, factors.high) + 1n };
  return {
    before: known,
    after: both(expired > 0n ? withExpired : computed, scaled(charged, factors, figures.counts.calls ?? 0)),
  };
}

/** A price per call is charged in whole nano-yuan. */
function callsPaid(perCall: bigint, charged: NanoYuan): bigint | undefined {
  const one = (perCall + 500n) / 1_000n;
  return one > 0n && charged % one === 0n ? charged / one : undefined;
}

/** Calls that expired were charged their input, of which no count says how much it was. */
function expiredAtMost(before: Price, usage: Usage, charged: NanoYuan): NanoYuan {
  const { low } = chargeBounds(before, usage);
  return charged > low ? charged - low : 0n;
}

interface Fraction {
  over: bigint;
  under: bigint;
}
interface Factors {
  low: Fraction;
  high: Fraction;
}

const isLess = (a: Fraction, b: Fraction): boolean => a.over * b.under < b.over * a.under;

interface Compared {
  before: Price;
  after: Price;
  usage: Usage;
  /** Calls that are not in the usage may have been of any length. */
  isAnyLength: boolean;
}

/** Between which factors each product of each call changes. Undefined: one costs something that cost nothing before. */
function factorsOf({ before, after, usage, isAnyLength }: Compared): Factors | undefined {
  if (before.type !== 'token-billing' || after.type !== 'token-billing') return undefined;
  const kinds = [...new Set<TokenKind>(['input', ...kindsUsed(usage)])];
  const reached = (tiers: Tiers) => (isAnyLength ? tiers : reachableTiers(tiers, usage));
  const pairs = [before.tiers, after.tiers]
    .flatMap((tiers) => reached(tiers).map(({ above }) => above + 1))
    .map((length): [Rates, Rates] => [
      tierFor(before.tiers, length).rates,
      tierFor(after.tiers, length).rates,
    ]);
  const fractions = pairs.flatMap(([old, next]) =>
    kinds
      .map((kind) => ({ over: next[kind], under: old[kind] }))
      .filter(({ over, under }) => over > 0n || under > 0n),
  );
  const [first, ...others] = fractions;
  if (!first || fractions.some(({ under }) => under === 0n)) return undefined;
  return {
    low: others.reduce((least, each) => (isLess(each, least) ? each : least), first),
    high: others.reduce((most, each) => (isLess(most, each) ? each : most), first),
  };
}

const times = (amount: NanoYuan, { over, under }: Fraction): NanoYuan => (amount * over) / under;

/** Each call is rounded by half at most, before and after. */
function scaled(charged: NanoYuan, { low, high }: Factors, calls: number): Bounds {
  const slack = (factor: Fraction): bigint => BigInt(calls) * (1n + factor.over / factor.under) + 1n;
  const least = times(charged, low) - slack(low);
  return { low: least > 0n ? least : 0n, high: times(charged, high) + slack(high) };
}

// What calls can have cost at a price, when only their sums are known: the least and the most. Of prices without tiers that
// is one sum, to the rounding of each call. Pure.

const thousandthsOfNano = 1_000_000n;

/** @param paidCalls how many of the calls a price per call was charged for. Undefined: some of them. */
function chargeBounds(price: Price, usage: Usage, paidCalls?: bigint): Bounds {
  if (price.type === 'non-billing') return nothing;
  if (price.type === 'token-billing') return tokenBounds(price.tiers, usage);
  const perCall = (price.perCall + 500n) / 1_000n;
  // Whoever leaves before the first content pays nothing, and no sum says how many did.
  return paidCalls === undefined
    ? { low: 0n, high: perCall * BigInt(usage.calls) }
    : exactly(perCall * paidCalls);
}

/** Rounded for each call, half up. */
function tokenBounds(tiers: Tiers, usage: Usage): Bounds {
  const { low, high, isWhole } = sumBounds(tiers, usage);
  if (isWhole) return { low: low / thousandthsOfNano, high: high / thousandthsOfNano };
  const rounding = (BigInt(usage.calls) * thousandthsOfNano) / 2n;
  const least = low - rounding;
  return {
    low: least <= 0n ? 0n : (least + thousandthsOfNano - 1n) / thousandthsOfNano,
    high: (high + rounding) / thousandthsOfNano,
  };
}

/** In thousandths of a pico-yuan. `isWhole`: each token costs whole nano-yuan, so no call is rounded. */
function sumBounds(tiers: Tiers, usage: Usage): { low: bigint; high: bigint; isWhole: boolean } {
  const reachable = reachableTiers(tiers, usage);
  const sums = { low: 0n, high: 0n, isWhole: true };
  for (const kind of kindsUsed(usage)) {
    const products = reachable.map((tier) => productOf(tier, kind, usage));
    sums.low += products.reduce((a, b) => (b < a ? b : a));
    sums.high += products.reduce((a, b) => (b > a ? b : a));
    sums.isWhole &&= reachable.every(({ rates }) => rates[kind] % thousandthsOfNano === 0n);
  }
  return sums;
}

/** The tiers that one of so many calls can have come to: the input of one call decides, and only its sum is known. */
function reachableTiers(tiers: Tiers, { calls, tokens }: Usage): [Tier, ...Tier[]] {
  const [first, ...higher] = tiers;
  const reached = higher.filter(({ above }) => tokens.prompt_tokens > above);
  const last = reached.at(-1);
  return calls === 1 && last ? [last] : [first, ...reached];
}

/** The kinds of tokens of which there are any. */
const kindsUsed = ({ tokens }: Usage): TokenKind[] =>
  productsOf(noTier, tokens).flatMap(([kind, count]) => (count > 0 ? [kind] : []));

const zero = { input: 0n, output: 0n, cachedInput: 0n, cacheWrite: 0n, cacheWrite1h: 0n };
const noTier: Tier = { above: 0, rates: zero };

const productOf = (tier: Tier, kind: TokenKind, { tokens }: Usage): bigint =>
  productsOf(tier, tokens)
    .filter(([name]) => name === kind)
    .reduce((sum, [, count, rate]) => sum + BigInt(count) * rate, 0n);

// What of a day's calls prices are applied to, from its sums. Pure.

interface Usage {
  calls: number;
  tokens: TokenCounts;
}

const less = (all = 0, unpaid = 0): number => Math.max(0, all - unpaid);

/** Without calls on plans, of official mode, and those that were released or expired. */
function paidUsage({ counts }: DailyFigures): Usage {
  return {
    calls: less(counts.calls, counts.unpaid_calls),
    tokens: {
      prompt_tokens: less(counts.prompt_tokens, counts.unpaid_prompt_tokens),
      completion_tokens: less(counts.completion_tokens, counts.unpaid_completion_tokens),
      prompt_tokens_details: {
        cached_tokens: less(counts.cached_tokens, counts.unpaid_cached_tokens),
        cache_write_tokens: less(counts.cache_write_tokens, counts.unpaid_cache_write_tokens),
        cache_write_1h_tokens: less(counts.cache_write_1h_tokens, counts.unpaid_cache_write_1h_tokens),
      },
    },
  };
}

/** Of all calls: the operator pays for those too that nobody pays for. */
const allUsage = ({ counts, amounts }: DailyFigures): Usage =>
  paidUsage({
    counts: Object.fromEntries(Object.entries(counts).filter(([name]) => !name.startsWith('unpaid_'))),
    amounts,
  });

/** Calls that ended without an answer to pay for. An expired one of them was charged its input, which no count says. */
const unfinishedCalls = ({ counts }: DailyFigures): number =>
  Math.max(0, (counts.unpaid_calls ?? 0) - (counts.plan_calls ?? 0) - (counts.official_calls ?? 0));

// What models callers are offered by a configuration, and at what price. Pure.

type EditedConfig = Pick<Snapshot, 'channels' | 'charges' | 'models' | 'settings' | 'unreadPrices'>;

const unpricedOf = ({ models, charges }: EditedConfig, atMs: number): string[] => {
  const priced = pricedModels(charges, atMs);
  return models.filter((model) => !priced.has(model));
};

const isOffered = (config: EditedConfig, model: string, atMs: number): boolean =>
  config.models.includes(model) &&
  (!needsPrice(config, model) || pricedModels(config.charges, atMs).has(model));

/** Refused ones cost nothing either, but are not free. */
const isFreeIn = (config: EditedConfig, model: string, atMs: number): boolean =>
  isOffered(config, model, atMs) && isFree(priceOf(config.charges, model, atMs));

// What calls cost the operator by the rows of channels before and after an edit, when only their sums are known. Pure.

type Channels = readonly ChannelRow[];

interface BoughtAround {
  before: Bounds;
  /** Calls whose channel is gone are taken by any other one that serves the model. */
  after: Bounds;
  /** Calls whose cost no row says after the edit. */
  unknownCalls: number;
}

interface ServedBy {
  model: string;
  /** Undefined: no channel was tried. */
  channel: string | undefined;
  figures: DailyFigures;
}

function boughtAround(
  { model, channel, figures }: ServedBy,
  { before, after }: { before: Channels; after: Channels },
): BoughtAround {
  const actual = exactly(figures.amounts.bought ?? 0n);
  const calls = figures.counts.calls ?? 0;
  const unsaid = calls - (figures.counts.bought_calls ?? 0);
  if (channel === undefined) return { before: actual, after: actual, unknownCalls: 0 };
  // An item has the first characters of a long id.
  const is = ({ id }: ChannelRow): boolean => servedOf(servedKey('', model, id)).channel === channel;
  const stays = serving(after, model).find(is);
  const old = before.find(is);
  // What was off or gone before is not this edit's doing.
  const isGone = !stays && !serving(before, model).some(is);
  if (isGone || (stays && old && isSameCost(costOf(old, model), costOf(stays, model))))
    return { before: actual, after: actual, unknownCalls: unsaid };
  const takers = stays ? [stays] : serving(after, model);
  const costs = takers.flatMap((taker) => costOf(taker, model) ?? []);
  if (costs.length === 0)
    return { before: actual, after: nothing, unknownCalls: takers.length > 0 ? calls : 0 };
  return {
    before: actual,
    after: oneOf(costs.map((cost) => costBounds(cost, figures))),
    unknownCalls: costs.length < takers.length ? calls : 0,
  };
}

const serving = (channels: Channels, model: string): ChannelRow[] =>
  channels.filter(({ models }) => models.includes(model));

const costOf = (channel: ChannelRow, model: string): BuyingPrice | undefined =>
  buyingPriceOf(channel.cost, upstreamModel(channel, model));

const isSameCost = (a: BuyingPrice | undefined, b: BuyingPrice | undefined): boolean =>
  canonicalJson(a ?? null) === canonicalJson(b ?? null);

/** Each call is rounded once. */
function costBounds(
  { input = 0, output = 0, per_call = 0, rate = 1, ...price }: BuyingPrice,
  figures: DailyFigures,
): Bounds {
  const usage = allUsage(figures);
  const sums = sumBounds(tiersOf({ ...price, input, output }), usage);
  const perCalls = BigInt(usage.calls) * toPico(per_call) * 1_000n;
  const inYuan = (sum: bigint): bigint => divideHalfUp(sum * toPico(rate), 1_000_000n * toPico(1));
  const rounding = BigInt(Math.ceil(usage.calls / 2));
  const low = inYuan(sums.low) - rounding;
  return { low: low > 0n ? low : 0n, high: inYuan(sums.high + perCalls) + rounding };
}
