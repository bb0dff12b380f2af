/**
 * View: what an edit of prices or channels would have made of the calls of some days, by public model, when only their sums
 * are known: amounts are bounds, the least and the most that it can be. Pure.
 */
import { mapInputParts } from '../../wire/chat-response.ts';
import {
  findBuyingPrice,
  buildBuyingPrice,
  buildPrice,
  computeCost,
  factorOne,
  findFactor,
  findPrice,
  findRule,
  findServiceFactor,
  listServicePrices,
  listPricedModels,
  listProducts,
  productsPerNano,
  tiersOf,
  convertToPico,
  type BuyingPrice,
  type Price,
  type Tier,
  type Tiers,
  type TokenCounts,
  type TokenPrice,
} from '../../billing/price.ts';
import { divideHalfUp, larger, smaller, type NanoYuan } from '../../billing/money.ts';
import { addFigures, sumFigures, type DailyFigures, type DailySum } from '../../billing/daily-figures.ts';
import { buildServedKey, modelOf, parseServedKey } from '../../billing/daily-keys.ts';
import { listCallerPrices, type PricedCustomer } from '../../config/customer-prices.ts';
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import { needsPrice, type Snapshot } from '../../config/snapshot.ts';
import { upstreamModelOf } from '../../upstreams/called-channel.ts';
import { canonicalJson, compareCodeUnits } from '../../wire/json.ts';
import type { ServedDay } from '../operator-ports.ts';

type EditedConfig = Pick<Snapshot, 'channels' | 'charges' | 'models' | 'settings' | 'unreadPrices'>;

interface Edit {
  before: EditedConfig;
  after: EditedConfig;
  served: readonly ServedDay[];
  /** The prices of then are compared. */
  atMs: number;
  /** Customers with their own prices. They widen the bounds, because the sums do not record who made the calls. */
  customers: readonly PricedCustomer[];
  /** The only customers whose prices the edit changes, with their sums. Undefined: it may change the price of anybody. */
  members?: readonly { customer: PricedCustomer; sums: readonly DailySum[] }[] | undefined;
}

/** Between a smallest and a largest amount. */
export interface Bounds {
  low: NanoYuan;
  high: NanoYuan;
}

interface Around {
  before: Bounds;
  after: Bounds;
}

/** `unknownCostCalls`: those whose cost no row says, so that the margin is without it. */
interface EffectSums {
  calls: number;
  charged: NanoYuan;
  revenue: Around;
  bought: Around;
  unknownCostCalls: number;
}

/** `isLost`: nobody serves it any more, so there are no such calls. */
export type ModelEffect = ReturnType<typeof computeModelEffect>;

/** `lost`: models without a channel by it; `free`: that cost something before; `unpriced`: served, and by no rule priced any more. */
export function editEffects(edit: Edit) {
  const { before, after, served, atMs } = edit;
  const models = [...Map.groupBy(served, ({ model }) => model)]
    .map(([model, items]) => computeModelEffect(edit, model, items))
    .toSorted((a, b) => compareCodeUnits(a.model, b.model));
  const findUnpriced = ({ models: names, charges }: EditedConfig): string[] => {
    const priced = listPricedModels(charges, atMs);
    return names.filter((model) => !priced.has(model));
  };
  // Refused ones cost nothing either, but are not free.
  const isFreeIn = (config: EditedConfig, model: string): boolean =>
    isOffered(config, model, atMs) && isFree(findPrice(config.charges, model, atMs));
  const wasUnpriced = findUnpriced(before);
  return {
    models,
    total: sumEffects(models),
    lost: before.models.filter((model) => !after.models.includes(model)),
    free: after.models.filter(
      (model) => isFreeIn(after, model) && before.models.includes(model) && !isFreeIn(before, model),
    ),
    unpriced: findUnpriced(after).filter((model) => !wasUnpriced.includes(model)),
  };
}

const isOffered = (config: EditedConfig, model: string, atMs: number): boolean =>
  config.models.includes(model) &&
  (!needsPrice(config, model) || listPricedModels(config.charges, atMs).has(model));

function computeModelEffect(edit: Edit, model: string, items: ServedDay[]) {
  const { before, after, atMs } = edit;
  const prices = {
    before: listPossiblePrices(before, edit, model),
    after: listPossiblePrices(after, edit, model),
  };
  const isLost = !after.models.includes(model) && before.models.includes(model);
  const isRefused = isLost || (!isOffered(after, model, atMs) && isOffered(before, model, atMs));
  const sums = items.map((item): EffectSums => {
    const { counts, amounts } = item.figures;
    // The difference that members would have paid is added below.
    const revenue = boundRevenue(edit.members ? { ...prices, after: prices.before } : prices, item.figures);
    const bought = boundCost(item, { before: before.channels, after: after.channels });
    return {
      calls: counts.calls ?? 0,
      charged: amounts.charged ?? 0n,
      revenue: isRefused ? { ...revenue, after: nothing } : revenue,
      bought: isRefused ? { ...bought, after: nothing } : bought,
      unknownCostCalls: isRefused ? 0 : bought.unknownCalls,
    };
  });
  const isPriceChanged = !areSamePrices(prices.before, prices.after);
  const added = isRefused ? [] : boundMembers(edit, model);
  return { model, ...sumEffects([...sums, ...added]), isPriceChanged, isLost };
}

/** Bounds how much more or less each member would have paid. Sums of accounts count unpaid calls, too, so the difference is scaled to the charge. */
const boundMembers = ({ before, after, members = [], atMs }: Edit, model: string): EffectSums[] =>
  members.map(({ customer, sums }) => {
    const figures = sumFigures(sums.filter((sum) => modelOf(sum) === model).map((sum) => sum.figures));
    const [old, next] = [before, after].map(
      (config) => listCallerPrices(config, customer, model, atMs) as unknown as Prices,
    ) as [Prices, Prices];
    const revenue = boundRevenue({ before: old, after: next }, figures);
    const charged = figures.amounts.charged ?? 0n;
    const least = revenue.before.low;
    const [one, other] = (['low', 'high'] as const)
      .map((side) => revenue.after[side] - revenue.before[side])
      .map((rise) => (charged < least ? (rise * charged) / least : rise)) as [NanoYuan, NanoYuan];
    return {
      calls: 0,
      charged: 0n,
      revenue: { before: nothing, after: { low: smaller(one, other), high: larger(one, other) } },
      bought: { before: nothing, after: nothing },
      unknownCostCalls: 0,
    };
  });

/** Lists the rule's own price, then those of its windows and of customers. */
function listPossiblePrices(
  config: EditedConfig,
  { customers, atMs }: Pick<Edit, 'customers' | 'atMs'>,
  model: string,
): Prices {
  const base = buildPrice(findRule(config.charges, model, atMs));
  const own = [undefined, ...customers].flatMap((each) => listCallerPrices(config, each, model, atMs));
  const others = new Map(own.map((price) => [contentOf(price), price]));
  others.delete(contentOf(base));
  return [base, ...others.values()];
}

export const hasEffect = ({ revenue, bought, isLost, isPriceChanged }: ModelEffect): boolean =>
  isLost ||
  isPriceChanged ||
  [revenue, bought].some(({ before, after }) => before.low !== after.low || before.high !== after.high);

export const boundExactly = (amount: NanoYuan): Bounds => ({ low: amount, high: amount });
const nothing = boundExactly(0n);

const addBounds = (a: Bounds, b: Bounds): Bounds => ({ low: a.low + b.low, high: a.high + b.high });
const subtractBounds = (a: Bounds, b: Bounds): Bounds => ({ low: a.low - b.high, high: a.high - b.low });

function sumEffects(all: readonly EffectSums[]) {
  const sumAround = (of: 'revenue' | 'bought'): Around => ({
    before: all.map((each) => each[of].before).reduce(addBounds, nothing),
    after: all.map((each) => each[of].after).reduce(addBounds, nothing),
  });
  const [revenue, bought] = [sumAround('revenue'), sumAround('bought')];
  return {
    calls: all.reduce((sum, { calls }) => sum + calls, 0),
    charged: all.reduce((sum, { charged }) => sum + charged, 0n),
    revenue,
    bought,
    margin: {
      before: subtractBounds(revenue.before, bought.before),
      after: subtractBounds(revenue.after, bought.after),
    },
    unknownCostCalls: all.reduce((sum, { unknownCostCalls }) => sum + unknownCostCalls, 0),
  };
}

export const middleOf = ({ low, high }: Bounds): NanoYuan => (low + high) / 2n;

/** How far the truth may be from the middle, in percent of it, rounded up to hundredths. 0: exact; undefined: the middle is 0. */
export function measureUncertainty({ low, high }: Bounds): number | undefined {
  if (low === high) return 0;
  const middle = low + high;
  if (middle === 0n) return undefined;
  const size = middle < 0n ? -middle : middle;
  return Number(((high - low) * 10_000n + size - 1n) / size) / 100;
}

/** `exact`, or by how much the worst of them may be wrong. */
export function certaintyOf(...all: Bounds[]): string {
  const within = all.map(measureUncertainty);
  if (within.every((percent) => percent === 0)) return 'exact';
  const [worst] = within.toSorted((a, b) => (b ?? Infinity) - (a ?? Infinity));
  return worst === undefined ? 'unknown' : `within ${worst} %`;
}

interface Usage {
  calls: number;
  tokens: TokenCounts;
}

const clampToZero = (count = 0): number => Math.max(0, count);

function usageOf({ counts }: DailyFigures): Usage {
  return {
    calls: clampToZero(counts.calls),
    tokens: {
      prompt_tokens: clampToZero(counts.prompt_tokens),
      completion_tokens: clampToZero(counts.completion_tokens),
      prompt_tokens_details: mapInputParts('count', ({ count }) => clampToZero(counts[count])),
    },
  };
}

/** Without calls on plans, of official mode, and those that were released or expired. */
const selectPaidUsage = (figures: DailyFigures): Usage => {
  const { counts } = figures;
  const less = {
    calls: -(counts.unpaid_calls ?? 0),
    prompt_tokens: -(counts.unpaid_prompt_tokens ?? 0),
    completion_tokens: -(counts.unpaid_completion_tokens ?? 0),
    ...mapInputParts('count', ({ count }) => -(counts[`unpaid_${count}`] ?? 0)),
  };
  return usageOf(addFigures(figures, { counts: less, amounts: {} }));
};

type Prices = readonly [Price, ...Price[]];

/**
 * The actual charge if the price stays; else what both prices give for the tokens. Expired calls are left out: no
 * count says how much input they were charged.
 */
function boundRevenue({ before, after }: Record<keyof Around, Prices>, figures: DailyFigures): Around {
  const charged = figures.amounts.charged ?? 0n;
  if (areSamePrices(before, after)) return { before: boundExactly(charged), after: boundExactly(charged) };
  const usage = selectPaidUsage(figures);
  // Searches have a price of their own, which no rule changes.
  const ofCalls = charged - (figures.amounts.searched ?? 0n);
  const [base, ...others] = before;
  const isOne = base.type === 'times-billing' && others.length === 0;
  const paid = isOne ? callsPaid(computeCost(base, noTokens), ofCalls) : undefined;
  const boundAny = (prices: Prices): Bounds => {
    const each = prices.map((price) => chargeBounds(price, usage, paid));
    return {
      low: each.map(({ low }) => low).reduce(smaller),
      high: each.map(({ high }) => high).reduce(larger),
    };
  };
  return { before: boundAny(before), after: boundAny(after) };
}

/** Apart from the id of their rules. */
const areSamePrices = (a: Prices, b: Prices): boolean =>
  a.map(contentOf).toSorted().join() === b.map(contentOf).toSorted().join();

const contentOf = (price: Price): string =>
  JSON.stringify({ ...price, rule: 0 }, (_, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  );

const isFree = (price: Price): boolean =>
  price.type === 'non-billing' ||
  (price.type === 'times-billing'
    ? price.perCall === 0n
    : price.tiers.every(({ rates }) => Object.values(rates).every((rate) => rate === 0n)));

const noTokens: TokenCounts = { prompt_tokens: 0, completion_tokens: 0 };

/** A price per call is charged in whole nano-yuan. */
function callsPaid(one: NanoYuan, charged: NanoYuan): bigint | undefined {
  return one > 0n && charged % one === 0n ? charged / one : undefined;
}

/** @param paidCalls how many calls paid a price per call, if that is known */
function chargeBounds(price: Price, usage: Usage, paidCalls?: bigint): Bounds {
  if (price.type === 'non-billing') return nothing;
  if (price.type === 'token-billing') return boundTokenCharge(price, usage);
  const perCall = computeCost(price, noTokens);
  // A client that leaves before the first content pays nothing, and no sum counts such clients.
  return paidCalls === undefined
    ? { low: 0n, high: perCall * BigInt(usage.calls) }
    : boundExactly(perCall * paidCalls);
}

/** Rounded for each call, half up, unless each token costs whole nano-yuan. */
function boundTokenCharge(price: TokenPrice, usage: Usage): Bounds {
  const { low, high, isWhole } = sumBounds(price.tiers, listServicePrices(price).map(findFactor), usage);
  const rounding = isWhole ? 0n : (BigInt(usage.calls) * productsPerNano) / 2n;
  const up = isWhole ? 0n : productsPerNano - 1n;
  return {
    low: low <= rounding ? 0n : (low - rounding + up) / productsPerNano,
    high: (high + rounding) / productsPerNano,
  };
}

/**
 * In units of `productsPerNano`, for any service tier. `isWhole` means each token costs whole nano-yuan, so no
 * call is rounded.
 */
function sumBounds(tiers: Tiers, possible: bigint[], usage: Usage): Bounds & { isWhole: boolean } {
  const sums = { low: 0n, high: 0n, isWhole: possible.length === 1 };
  const products = findReachableTiers(tiers, usage).flatMap((tier) => listProducts(tier, usage.tokens));
  for (const same of Map.groupBy(products, ([kind]) => kind).values()) {
    const amounts = same.map(([, count, rate]) => BigInt(count) * rate);
    const factor = possible.reduce(larger);
    sums.low += amounts.reduce(smaller) * possible.reduce(smaller);
    sums.high += amounts.reduce(larger) * factor;
    sums.isWhole &&= same.every(([, count, rate]) => count === 0 || (rate * factor) % productsPerNano === 0n);
  }
  return sums;
}

/** The tiers that one of so many calls can have come to: the input of one call decides, and only its sum is known. */
function findReachableTiers(tiers: Tiers, { calls, tokens }: Usage): Tier[] {
  const [first, ...higher] = tiers;
  const reached = higher.filter(({ above }) => tokens.prompt_tokens > above);
  const last = reached.at(-1);
  return calls === 1 && last ? [last] : [first, ...reached];
}

type Channels = readonly ChannelRow[];

/**
 * The operator's cost. Calls of a removed channel are moved to another channel that serves the model.
 * `unknownCalls` have no known cost after the edit.
 */
function boundCost(
  { model, channel, figures }: ServedDay,
  { before, after }: { before: Channels; after: Channels },
): Around & { unknownCalls: number } {
  const actual = boundExactly(figures.amounts.bought ?? 0n);
  const calls = figures.counts.calls ?? 0;
  if (channel === undefined) return { before: actual, after: actual, unknownCalls: 0 };
  // An item has the first characters of a long id.
  const is = ({ id }: ChannelRow): boolean =>
    parseServedKey(buildServedKey('', model, id)).channel === channel;
  const findServing = (channels: Channels): ChannelRow[] =>
    channels.filter(({ models }) => models.includes(model));
  const chooseBuyingPrice = (row: ChannelRow): BuyingPrice | undefined =>
    findBuyingPrice(row.cost, upstreamModelOf(row, model));
  const stays = findServing(after).find(is);
  const old = before.find(is);
  // A channel that was disabled or gone before is not an effect of this edit.
  const isGone = !stays && !findServing(before).some(is);
  const isSame =
    stays &&
    old &&
    canonicalJson(chooseBuyingPrice(old) ?? null) === canonicalJson(chooseBuyingPrice(stays) ?? null);
  if (isGone || isSame)
    return { before: actual, after: actual, unknownCalls: calls - (figures.counts.bought_calls ?? 0) };
  const takers = stays ? [stays] : findServing(after);
  const costs = takers
    .flatMap((taker) => chooseBuyingPrice(taker) ?? [])
    .flatMap((price) => [undefined, ...(price.windows ?? [])].map((open) => buildBuyingPrice(price, open)))
    .map((price) => boundBuyingCost(price, figures));
  const oneOf: Bounds = {
    low: costs.map(({ low }) => low).reduce(smaller, costs[0]?.low ?? 0n),
    high: costs.map(({ high }) => high).reduce(larger, 0n),
  };
  return { before: actual, after: oneOf, unknownCalls: costs.length < takers.length ? calls : 0 };
}

/** The operator pays for all calls, free ones included. Each call is rounded once. */
function boundBuyingCost(
  { input = 0, output = 0, per_call = 0, rate = 1, factor, ...price }: ReturnType<typeof buildBuyingPrice>,
  figures: DailyFigures,
): Bounds {
  const usage = usageOf(figures);
  const tiers = tiersOf({ ...price, input, output });
  const factors = [undefined, ...Object.keys(price.service_tiers ?? {})].map((tier) =>
    findServiceFactor(price.service_tiers, tier),
  );
  const sums = sumBounds(tiers, factors, usage);
  const perCalls = BigInt(usage.calls) * convertToPico(per_call) * 1_000n * factorOne;
  const convertToYuan = (sum: bigint): bigint =>
    divideHalfUp(sum * factor * convertToPico(rate), productsPerNano * factorOne * convertToPico(1));
  const rounding = BigInt(Math.ceil(usage.calls / 2));
  return {
    low: larger(0n, convertToYuan(sums.low) - rounding),
    high: convertToYuan(sums.high + perCalls) + rounding,
  };
}
