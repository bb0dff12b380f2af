import {
  larger,
  smaller,
  type NanoYuan,
  computeHighestCost,
  findHighestRates,
  productsPerNano,
  type Price,
} from './price.ts';
import { sumReserved, type QuotaItem, type RateCount } from './quota-item.ts';
import type { PlanEntry, AccountPlan } from '../wire/public-api.ts';

/** The estimated size of a call, before the upstream is called. Token counts are whole. */
export interface CallEstimate {
  inputTokens: number;
  inputTokensMax: number;
  n: number;
  /** An upper bound of the output tokens of one answer. The upstream is sent this limit. */
  outputTokensMax: number;
  /** The fewest output tokens of one answer for which the call is made, if the balance covers no more. */
  outputTokensLeast: number;
  /** The client asked for this limit, so the whole of it is held if the balance covers it. */
  reservesFully: boolean;
}

export interface ModelCost {
  price: Price;
  estimate: CallEstimate;
}

export interface ReserveNeed extends ModelCost {
  id: string;
  /** If other models may answer the call: whichever does must be covered. Absent: none may. */
  alternatives?: readonly ModelCost[] | undefined;
  /** The price of the web search that the call makes. No plan covers it. Absent: nothing. */
  searchPrice?: NanoYuan | undefined;
  /** Searches of the key a minute. Absent: the call makes none, or there is no limit. */
  searchRpm?: number | undefined;
  /** Plan slots that cover each model that may answer, in row order. */
  slots: readonly PlanSlot[];
  key: string;
  maxConcurrency?: number | undefined;
  accountConcurrency?: number | undefined;
  accountRpm?: number | undefined;
  accountTpm?: number | undefined;
  budgetLeft?: NanoYuan | undefined;
  /** The account is metered: no balance pays, and none refuses. */
  metered?: boolean | undefined;
  /** When the call began, in epoch milliseconds: its minute, day and plan month. */
  nowMs: number;
  /** Reserve neither an amount nor a plan slot: official calls, and free calls of keys with limits that make no priced search. */
  reservesNothing: boolean;
}

/** How a call is paid: by a plan slot, which leaves its search to the balance, or by an amount. A low balance may lower the output limit. */
export interface CallPayment {
  slot?: PlanSlot | undefined;
  amount: NanoYuan;
  /** The write is refused if less than this is available: the amount, and what it has to leave to others. */
  balanceNeeded: NanoYuan;
  /** Output tokens per answer that the amount covers; undefined: as many as requested. */
  limitedTo?: number | undefined;
  limitedBy?: 'balance' | 'budget' | undefined;
}

/** `reserved`: calls under way hold what this call needs, so it may be made later. */
export type ReserveRefusal =
  | { reason: 'quota' | 'reserved'; available: NanoYuan; need: NanoYuan }
  | { reason: 'concurrency' }
  | { reason: 'budget'; left: NanoYuan; need: NanoYuan; isShared?: boolean }
  | { reason: 'rate' | 'search_rate' | 'account_rpm' | 'account_tpm' }
  | { reason: 'open_entries' };

/** `lastTry`: others took what this call wanted each time, so it is content with the least that it needs. */
export interface ReserveTry {
  lastTry?: boolean;
}

/** The maximum cost of the call, reserved from the balance while the call runs. */
export function computeReserveAmount(
  price: Price,
  { inputTokensMax, n, outputTokensMax }: CallEstimate,
): NanoYuan {
  return computeHighestCost(price, inputTokensMax, n * outputTokensMax);
}

/**
 * Decides how to pay for a call, based on the known state of a part of the account, or why to refuse it. The
 * limits of the need are those of the part.
 */
export function planReservation(
  need: ReserveNeed,
  item: QuotaItem,
  { lastTry = false }: ReserveTry = {},
): CallPayment | ReserveRefusal {
  const { leases: lapsed, countOfKey: ofKey } = findExpiredLeases(need, item);
  if (item.open.size - lapsed.size >= (need.accountConcurrency ?? Infinity))
    return { reason: 'open_entries' };
  if ((item.permits.get(need.key)?.size ?? 0) - ofKey >= (need.maxConcurrency ?? Infinity))
    return { reason: 'concurrency' };
  const { rate } = item;
  // A part without a share refuses the first call of a minute, too.
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

/** Nothing is held but in the key's budget, which bounds the call as it does any. */
function payMetered(need: ReserveNeed, item: QuotaItem, lastTry: boolean): CallPayment | ReserveRefusal {
  if (need.budgetLeft === undefined) return nothing;
  const plan = payFromBalance(need, { ...item, available: noBound }, lastTry);
  return isRefusal(plan) ? plan : { ...plan, balanceNeeded: 0n };
}

/** More than any call costs. */
const noBound = 10n ** 30n;

/** Minutes since the epoch. */
export const minuteOf = (ms: number): number => Math.floor(ms / 60_000);

/** A renewal may be this late, and clocks differ. */
const toleranceMs = 5_000;
/** Each is a condition of a write, whose size is bounded. */
const lapsedMax = 100;

/**
 * The open calls that crashed, so that limits of calls at once leave them out: their lease has passed. With its end as read, on
 * which the reserve is conditioned: a renewal wins. `countOfKey`: how many of them hold a place of the key.
 */
export function findExpiredLeases(
  { key, maxConcurrency, accountConcurrency, nowMs }: ReserveNeed,
  { open, permits: places }: QuotaItem,
): { leases: ReadonlyMap<string, number>; countOfKey: number } {
  if ((maxConcurrency ?? accountConcurrency) === undefined) return { leases: new Map(), countOfKey: 0 };
  const ends = [...open].map(([id, { until }]) => [id, until] as const);
  const ended = ends.filter(([, until]) => until * 1000 + toleranceMs < nowMs);
  const own = ended.filter(([id]) => places.get(key)?.has(id)).slice(0, lapsedMax);
  // Those of other keys count for a limit of the account alone.
  const all = accountConcurrency === undefined ? own : [...new Map([...own, ...ended])].slice(0, lapsedMax);
  return { leases: new Map(all), countOfKey: own.length };
}

const nothing = { amount: 0n, balanceNeeded: 0n } as const;
const noCalls: Pick<RateCount, 'count' | 'tokens'> = { count: 0 };

/**
 * A call holds at most half of what is free, of the balance and of the key's budget, so that one call does not
 * silence all others, but never less than it needs for the fewest tokens. A limit that the client asked for is held
 * whole.
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
  // What is free of a split account is about as much in each of its parts.
  const parts = BigInt(item.shardCount);
  const shareOfFree = (free: NanoYuan, copies: bigint): NanoYuan => {
    if (isWhole && free >= most) return most;
    return smaller(most, lastTry ? least : larger(least, smaller(free, (free * copies) / 2n)));
  };
  const ofBalance = shareOfFree(available, parts);
  const amount = budgetLeft === undefined ? ofBalance : smaller(ofBalance, shareOfFree(budgetLeft, 1n));
  const leavesNone = amount === least || (isWhole && amount === most);
  const atLeast = leavesNone ? amount : larger(amount, (2n * amount) / parts);
  if (amount === most) return { amount, balanceNeeded: atLeast };
  const limitedBy = amount < ofBalance ? 'budget' : 'balance';
  return { amount, balanceNeeded: atLeast, limitedTo: coverOutput(costs, amount - search), limitedBy };
}

/**
 * The output tokens of one answer that an amount covers, whichever model answers; below zero where it does not cover the input.
 * Undefined: it covers every answer.
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
  const rest = amount - computeReserveAmount(price, { ...estimate, outputTokensMax: 0 });
  return Number((rest * productsPerNano) / (findOutputRate(cost) * BigInt(estimate.n)));
}

/** The highest price of 1,000 output tokens, times the factor. Zero: the price does not grow with the output. */
const findOutputRate = ({ price, estimate }: ModelCost): bigint =>
  price.type === 'token-billing' ? findHighestRates(price, estimate.inputTokensMax).output : 0n;

export const isRefusal = (plan: CallPayment | ReserveRefusal): plan is ReserveRefusal => 'reason' in plan;

/** What the whole account is short of, whichever of its keys calls. */
export const isOfAccount = ({ reason }: ReserveRefusal): boolean =>
  reason !== 'concurrency' && reason !== 'rate' && reason !== 'budget';

export const isForMoney = (
  refusal: ReserveRefusal,
): refusal is Extract<ReserveRefusal, { reason: 'quota' | 'reserved' }> =>
  refusal.reason === 'quota' || refusal.reason === 'reserved';

/** The plan that an account holds. Times in epoch milliseconds. */
export interface Subscription {
  level: number;
  since: number;
  until?: number | undefined;
}

/** The counter of a plan entry for the current month. Each call on the plan is counted on one slot. */
export interface PlanSlot {
  itemId: string;
  name: string;
  /**
   * `<item>@<first day of the month>`. The level is not part of it, so counts survive renewals and changes of
   * level.
   */
  key: string;
  /** The counter of two months ago. It is no longer read, so the reserve write removes it. */
  staleKey: string;
  /** Calls per month; null: unlimited, but still counted. */
  limit: number | null;
  resetsAtMs: number;
}

export const isSubscribed = (held: Subscription | undefined, nowMs: number): held is Subscription =>
  held !== undefined && held.since <= nowMs && (held.until === undefined || nowMs < held.until);

export interface SlotQuery {
  plans: readonly PlanEntry[];
  subscription: Subscription | undefined;
  nowMs: number;
  /** Only slots that cover this model; absent: all slots. */
  model?: string | undefined;
}

export function listPlanSlots({ plans, subscription: held, nowMs, model }: SlotQuery): PlanSlot[] {
  if (!isSubscribed(held, nowMs)) return [];
  const plan = plans.find(({ level }) => level === held.level);
  const period = findPlanPeriod(held.since, nowMs);
  const stale = findPreviousPeriod(held.since, findPreviousPeriod(held.since, period));
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

/** One month of a plan, in epoch milliseconds. `startMs` is inclusive, `endMs` exclusive. */
export interface PlanPeriod {
  startMs: number;
  endMs: number;
}

/**
 * The plan month that contains `nowMs`. Plan months are calendar months counted from the plan's first day, in
 * UTC. In a month without that day, the period begins on the month's last day; later periods do not move. A
 * plan from 31 January has periods from 28 (or 29) February and from 31 March.
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

/** The first day of a period, used in the keys of counters: `2026-11-21`. */
export const formatPeriodKey = (period: PlanPeriod): string =>
  new Date(period.startMs).toISOString().slice(0, 10);

function addMonths(date: Date, months: number): number {
  const year = date.getUTCFullYear();
  const month = date.getUTCMonth() + months;
  const daysInMonth = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  const time = date.getTime() - Date.UTC(year, date.getUTCMonth(), date.getUTCDate());
  return Date.UTC(year, month, Math.min(date.getUTCDate(), daysInMonth)) + time;
}

/**
 * The slots that cover a call to an alias: those of entries that name the alias, or every model that may answer and has a
 * price. An entry for some of them covers none, because callers can choose which one answers, by what they send.
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

export function describePlan({ subscription: held, counts, plans, nowMs }: PlanFacts): AccountPlan | null {
  if (!isSubscribed(held, nowMs)) return null;
  return {
    level: held.level,
    until: held.until === undefined ? null : convertToSeconds(held.until),
    items: listPlanSlots({ plans, subscription: held, nowMs }).map((slot) => ({
      id: slot.itemId,
      name: slot.name,
      used: counts.get(slot.key) ?? 0,
      value: slot.limit ?? -1,
      resets_at: convertToSeconds(slot.resetsAtMs),
    })),
  };
}

/** When the plan in the account's row ended, in Unix seconds; null: it did not, or the row has none. */
export const findPlanEnd = (held: Subscription | undefined, nowMs: number): number | null =>
  held?.until !== undefined && held.until <= nowMs ? convertToSeconds(held.until) : null;

const convertToSeconds = (milliseconds: number): number => Math.floor(milliseconds / 1000);
