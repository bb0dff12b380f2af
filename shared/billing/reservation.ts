/**
 * Decides how a call is paid before the upstream is asked: by a plan slot, or by an amount reserved from the balance, or why to refuse
 * it. Reads nothing itself: the caller passes the last known item of the account, and the conditional write checks it again.
 */
import { computeHighestCost, findHighestRates, productsPerNano, type Price } from './price.ts';
import { larger, smaller, type NanoYuan } from './money.ts';
import { sumReserved, type QuotaItem, type RateCount } from './quota-item.ts';
import type { PlanEntry, AccountPlan } from '../wire/public-api.ts';

/** The estimated size of a call, before the upstream is called. Token counts are whole. */
export interface CallEstimate {
  inputTokens: number;
  inputTokensMax: number;
  n: number;
  /** The upstream gets this limit of one answer. */
  outputTokensMax: number;
  /** The call is refused if the balance covers fewer output tokens of one answer. */
  outputTokensLeast: number;
  /** The client asked for this limit, so the call reserves all of it if the balance covers it. */
  reservesFully: boolean;
}

export interface ModelCost {
  price: Price;
  estimate: CallEstimate;
}

export interface ReserveNeed extends ModelCost {
  id: string;
  /** Other models that may answer the call. The reservation covers the dearest. */
  alternatives?: readonly ModelCost[] | undefined;
  /** No plan covers the web search. */
  searchPrice?: NanoYuan | undefined;
  searchRpm?: number | undefined;
  /** Plan slots that cover each model that may answer, in row order. */
  slots: readonly PlanSlot[];
  key: string;
  maxConcurrency?: number | undefined;
  accountConcurrency?: number | undefined;
  accountRpm?: number | undefined;
  accountTpm?: number | undefined;
  budgetLeft?: NanoYuan | undefined;
  metered?: boolean | undefined;
  /** When the call began. Decides its minute, day and plan month. */
  nowMs: number;
  /** Official calls, and free calls of keys with limits that make no priced search. */
  reservesNothing: boolean;
  /** A call in a background window, which waits for hours. */
  waits?: boolean | undefined;
}

/** With a slot, the balance pays only for the search. A low balance may lower the output limit. */
export interface CallPayment {
  slot?: PlanSlot | undefined;
  amount: NanoYuan;
  /** The write is refused if less is available: the amount, and what it must leave to other calls. */
  balanceNeeded: NanoYuan;
  /** Output tokens of one answer, if the amount covers fewer than requested. */
  limitedTo?: number | undefined;
  limitedBy?: 'balance' | 'budget' | undefined;
}

/** `reserved`: running calls reserve what this call needs, so it may succeed later. */
export type ReserveRefusal =
  | { reason: 'quota' | 'reserved'; available: NanoYuan; need: NanoYuan }
  | { reason: 'concurrency' }
  | { reason: 'budget'; left: NanoYuan; need: NanoYuan }
  | { reason: 'rate' | 'search_rate' | 'account_rpm' | 'account_tpm' | 'account_waiting' }
  | { reason: 'open_entries' };

export function computeReserveAmount(
  price: Price,
  { inputTokensMax, n, outputTokensMax }: CallEstimate,
): NanoYuan {
  return computeHighestCost(price, inputTokensMax, n * outputTokensMax);
}

/**
 * @param need with the limits that hold in the item's shard
 * @param lastTry in earlier tries other calls took what this one wanted, so it asks for the least that it needs
 */
export function planReservation(
  need: ReserveNeed,
  item: QuotaItem,
  { lastTry = false }: { lastTry?: boolean } = {},
): CallPayment | ReserveRefusal {
  const { leases, countOfKey } = findUncountedLeases(need, item);
  // One more would count as a running call, and block its key for hours.
  if (need.waits && leases.size >= leasesMax) return { reason: 'account_waiting' };
  if (item.open.size - leases.size >= (need.accountConcurrency ?? Infinity))
    return { reason: 'open_entries' };
  if ((item.permits.get(need.key)?.size ?? 0) - countOfKey >= (need.maxConcurrency ?? Infinity))
    return { reason: 'concurrency' };
  const { rate } = item;
  // A shard without a share refuses the first call of a minute, too.
  const { count, tokens = 0 } = rate && rate.minute >= minuteOf(need.nowMs) ? rate : noCalls;
  if (count >= (need.accountRpm ?? Infinity)) return { reason: 'account_rpm' };
  if (tokens >= (need.accountTpm ?? Infinity)) return { reason: 'account_tpm' };
  if (need.reservesNothing) return nothing;
  const slot = need.slots.find(({ key, limit }) => limit === null || (item.plan.get(key) ?? 0) < limit);
  const due: ReserveNeed = slot ? { ...need, price: free, alternatives: undefined } : need;
  const payment = need.metered ? payMetered(due, item, lastTry) : payFromBalance(due, item, lastTry);
  return slot && !isRefusal(payment) ? { ...payment, slot } : payment;
}

const free: Price = { type: 'non-billing', rule: null };

/** The calls of a metered account are limited only by budgets. */
function payMetered(need: ReserveNeed, item: QuotaItem, lastTry: boolean): CallPayment | ReserveRefusal {
  if (need.budgetLeft === undefined) return nothing;
  const plan = payFromBalance(need, { ...item, available: endlessBalance }, lastTry);
  return isRefusal(plan) ? plan : { ...plan, balanceNeeded: 0n };
}

/** More than any call costs. Used as an estimate, because a cached balance is too low once the calls in flight settle. */
export const endlessBalance = 10n ** 30n;

/** Minutes since the epoch. */
export const minuteOf = (ms: number): number => Math.floor(ms / 60_000);

/** A renewal may be late, and clocks differ. */
const toleranceMs = 5_000;
/** Calls renew their lease every minute. Only calls that wait for hours, in a background window, have longer leases. */
const runningMsMax = 20 * 60_000;
/** Each becomes a condition of the write, and a write has a limited size. */
export const leasesMax = 100;

/**
 * Finds calls that do not count towards limits of calls at once: crashed calls, whose lease has passed, and calls that wait at a vendor, because
 * they use no capacity. The reserve requires that each lease still has this end, so a renewal wins. `countOfKey` of them have a permit of the
 * key.
 */
export function findUncountedLeases(
  { key, maxConcurrency, accountConcurrency, nowMs }: ReserveNeed,
  { open, permits }: QuotaItem,
): { leases: ReadonlyMap<string, number>; countOfKey: number } {
  if ((maxConcurrency ?? accountConcurrency) === undefined) return { leases: new Map(), countOfKey: 0 };
  const ends = [...open].map(([id, { until }]) => [id, until] as const);
  const uncounted = ends.filter(
    ([, until]) => until * 1000 + toleranceMs < nowMs || until * 1000 > nowMs + runningMsMax,
  );
  const own = uncounted.filter(([id]) => permits.get(key)?.has(id)).slice(0, leasesMax);
  // Calls of other keys only count for a limit of the account.
  const all =
    accountConcurrency === undefined ? own : [...new Map([...own, ...uncounted])].slice(0, leasesMax);
  return { leases: new Map(all), countOfKey: own.length };
}

const nothing = { amount: 0n, balanceNeeded: 0n } as const;
const noCalls: Pick<RateCount, 'count' | 'tokens'> = { count: 0 };

/**
 * A call reserves at most half of what is free in the balance and in its budgets, so that one call does not block all others,
 * but never less than its fewest tokens need. A limit that the client asked for is reserved in full.
 */
function payFromBalance(need: ReserveNeed, item: QuotaItem, lastTry: boolean): CallPayment | ReserveRefusal {
  const { budgetLeft, searchPrice: search = 0n } = need;
  const costs = [need, ...(need.alternatives ?? [])];
  const most = costs.map(computeHighestAmount).reduce(larger) + search;
  if (most === 0n) return nothing;
  const { available } = item;
  const least = costs.map(computeLowestAmount).reduce(larger) + search;
  if (budgetLeft !== undefined && budgetLeft < least)
    return { reason: 'budget', left: budgetLeft, need: least };
  if (available < least)
    return { reason: available + sumReserved(item) < least ? 'quota' : 'reserved', available, need: least };
  const isWhole = costs.every((cost) => findOutputRate(cost) === 0n || cost.estimate.reservesFully);
  // Each shard of a split account has about as much free.
  const shards = BigInt(item.shardCount);
  const shareOfFree = (free: NanoYuan, copies: bigint): NanoYuan => {
    if (isWhole && free >= most) return most;
    return smaller(most, lastTry ? least : larger(least, smaller(free, (free * copies) / 2n)));
  };
  const ofBalance = shareOfFree(available, shards);
  const amount = budgetLeft === undefined ? ofBalance : smaller(ofBalance, shareOfFree(budgetLeft, 1n));
  const leavesNone = amount === least || (isWhole && amount === most);
  const balanceNeeded = leavesNone ? amount : larger(amount, (2n * amount) / shards);
  if (amount === most) return { amount, balanceNeeded };
  const limitedBy = amount < ofBalance ? 'budget' : 'balance';
  return { amount, balanceNeeded, limitedTo: coverOutput(costs, amount - search), limitedBy };
}

/**
 * Counts the output tokens of one answer that an amount covers, whichever model answers: undefined if it covers every answer, below
 * zero if it does not cover the input.
 */
function coverOutput(costs: readonly ModelCost[], amount: NanoYuan): number | undefined {
  const short = costs.filter((cost) => computeHighestAmount(cost) > amount);
  return short.length === 0
    ? undefined
    : Math.min(...short.map((cost) => countAffordableTokens(cost, amount)));
}

const computeHighestAmount = ({ price, estimate }: ModelCost): NanoYuan =>
  computeReserveAmount(price, estimate);

function computeLowestAmount(cost: ModelCost): NanoYuan {
  const { price, estimate } = cost;
  if (findOutputRate(cost) === 0n) return computeHighestAmount(cost);
  const { outputTokensMax, outputTokensLeast } = estimate;
  return computeReserveAmount(price, {
    ...estimate,
    outputTokensMax: Math.min(outputTokensMax, outputTokensLeast),
  });
}

function countAffordableTokens(cost: ModelCost, amount: NanoYuan): number {
  const { price, estimate } = cost;
  if (findOutputRate(cost) === 0n) return 0;
  const remainder = amount - computeReserveAmount(price, { ...estimate, outputTokensMax: 0 });
  return Number((remainder * productsPerNano) / (findOutputRate(cost) * BigInt(estimate.n)));
}

/** The highest price of 1,000 output tokens, times the factor. It is zero if the price does not grow with the output. */
const findOutputRate = ({ price, estimate }: ModelCost): bigint =>
  price.type === 'token-billing' ? findHighestRates(price, estimate.inputTokensMax).output : 0n;

export const isRefusal = (plan: CallPayment | ReserveRefusal): plan is ReserveRefusal => 'reason' in plan;

/** Refusals that hold for every key of the account. */
export const isOfAccount = ({ reason }: { reason: string }): boolean =>
  reason !== 'concurrency' && reason !== 'rate' && reason !== 'budget';

export const isForMoney = (
  refusal: ReserveRefusal,
): refusal is Extract<ReserveRefusal, { reason: 'quota' | 'reserved' }> =>
  refusal.reason === 'quota' || refusal.reason === 'reserved';

/** The plan of an account. Times in epoch milliseconds. */
export interface Subscription {
  level: number;
  since: number;
  until?: number | undefined;
}

/** The counter of a plan entry for the current month. Each call on the plan counts on one slot. */
export interface PlanSlot {
  itemId: string;
  name: string;
  /** `<item>@<first day of the month>`, without the level, so counts survive renewals and changes of level. */
  key: string;
  /** The counter of two months ago, which the reserve write removes. */
  staleKey: string;
  /** Calls a month; null if unlimited, but still counted. */
  limit: number | null;
  resetsAtMs: number;
}

export const isSubscribed = (
  subscription: Subscription | undefined,
  nowMs: number,
): subscription is Subscription =>
  subscription !== undefined &&
  subscription.since <= nowMs &&
  (subscription.until === undefined || nowMs < subscription.until);

export interface SlotQuery {
  plans: readonly PlanEntry[];
  subscription: Subscription | undefined;
  nowMs: number;
  /** Without a model, all slots. */
  model?: string | undefined;
}

export function listPlanSlots({ plans, subscription, nowMs, model }: SlotQuery): PlanSlot[] {
  if (!isSubscribed(subscription, nowMs)) return [];
  const plan = plans.find(({ level }) => level === subscription.level);
  const period = findPlanPeriod(subscription.since, nowMs);
  const stale = findPreviousPeriod(subscription.since, findPreviousPeriod(subscription.since, period));
  return (plan?.items ?? [])
    .filter((item) => model === undefined || item.models.includes(model))
    .map((item) => ({
      itemId: item.id,
      name: item.name === '' ? item.id : item.name,
      key: `${item.id}@${formatPeriodKey(period)}`,
      staleKey: `${item.id}@${formatPeriodKey(stale)}`,
      limit: item.value < 0 ? null : item.value,
      resetsAtMs: period.endMs,
    }));
}

/** One month of a plan; `endMs` is exclusive. */
export interface PlanPeriod {
  startMs: number;
  endMs: number;
}

/**
 * Plan months are calendar months counted from the plan's first day, in UTC. In a month without that day, the period begins on the
 * month's last day; later periods do not move. A plan from 31 January has periods from 28 (or 29) February and from 31 March.
 */
export function findPlanPeriod(sinceMs: number, nowMs: number): PlanPeriod {
  const since = new Date(sinceMs);
  const now = new Date(nowMs);
  let months = (now.getUTCFullYear() - since.getUTCFullYear()) * 12 + now.getUTCMonth() - since.getUTCMonth();
  if (addMonths(since, months) > nowMs) months -= 1;
  return { startMs: addMonths(since, months), endMs: addMonths(since, months + 1) };
}

export const findPreviousPeriod = (sinceMs: number, period: PlanPeriod): PlanPeriod =>
  findPlanPeriod(sinceMs, period.startMs - 1);

export const formatPeriodKey = (period: PlanPeriod): string =>
  new Date(period.startMs).toISOString().slice(0, 10);

export function addMonths(date: Date, months: number): number {
  const year = date.getUTCFullYear();
  const month = date.getUTCMonth() + months;
  const daysInMonth = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  const time = date.getTime() - Date.UTC(year, date.getUTCMonth(), date.getUTCDate());
  return Date.UTC(year, month, Math.min(date.getUTCDate(), daysInMonth)) + time;
}

/**
 * An entry covers an alias if it names the alias, or every model that may answer and has a price. An entry for only some of these
 * covers none, because callers could choose by what they send which model answers.
 */
export function listAliasSlots(
  query: Omit<SlotQuery, 'model'>,
  alias: string,
  pricedModels: readonly string[],
): PlanSlot[] {
  const keysOf = (model: string): ReadonlySet<string> =>
    new Set(listPlanSlots({ ...query, model }).map(({ key }) => key));
  const ofAlias = keysOf(alias);
  const ofModels = pricedModels.map(keysOf);
  return listPlanSlots(query).filter(
    ({ key }) => ofAlias.has(key) || ofModels.every((keys) => keys.has(key)),
  );
}

interface PlanFacts extends Omit<SlotQuery, 'model'> {
  counts: ReadonlyMap<string, number>;
}

export function describePlan({ subscription, counts, plans, nowMs }: PlanFacts): AccountPlan | null {
  if (!isSubscribed(subscription, nowMs)) return null;
  return {
    level: subscription.level,
    until: subscription.until === undefined ? null : convertToSeconds(subscription.until),
    items: listPlanSlots({ plans, subscription, nowMs }).map((slot) => ({
      id: slot.itemId,
      name: slot.name,
      used: counts.get(slot.key) ?? 0,
      value: slot.limit ?? -1,
      resets_at: convertToSeconds(slot.resetsAtMs),
    })),
  };
}

/** In Unix seconds, if the plan in the account's row has ended. */
export const findPlanEnd = (subscription: Subscription | undefined, nowMs: number): number | null =>
  subscription?.until !== undefined && subscription.until <= nowMs
    ? convertToSeconds(subscription.until)
    : null;

const convertToSeconds = (milliseconds: number): number => Math.floor(milliseconds / 1000);
