import { larger, smaller, type NanoYuan } from './amount.ts';
import type { PlanSlot } from './plans.ts';
import { mostCost, mostRates, type Price } from './price.ts';
import { reservedOf, type QuotaItem, type RateCount } from './quota-item.ts';

/** The estimated size of a call, before the upstream is called. Token counts are whole. */
export interface CallEstimate {
  /** The best estimate of the input. */
  inputTokens: number;
  /** An upper bound of the input. */
  inputTokensMax: number;
  /** The number of answers that the client asks for. */
  n: number;
  /** An upper bound of the output tokens of one answer. The upstream is sent this limit. */
  outputTokensMax: number;
  /** The fewest output tokens of one answer for which the call is made, if the balance covers no more. */
  outputTokensLeast: number;
  /** The client asked for this limit, so the whole of it is held if the balance covers it. */
  heldWhole: boolean;
}

/** What a call can cost if one model answers it. */
export interface ModelCost {
  price: Price;
  estimate: CallEstimate;
}

/** What a call needs from the account's item. */
export interface ReserveNeed extends ModelCost {
  id: string;
  /** If other models may answer the call: whichever does must be covered. Absent: none may. */
  others?: readonly ModelCost[] | undefined;
  /** Plan slots that cover each model that may answer, in row order. */
  slots: readonly PlanSlot[];
  key: string;
  /** How many calls of the key may run at once. */
  maxConcurrency?: number | undefined;
  /** How many calls of the account may run at once. */
  accountConcurrency?: number | undefined;
  /** The account's limits a minute. */
  accountRpm?: number | undefined;
  accountTpm?: number | undefined;
  /** What is left of the key's budget. Absent: it has none. */
  budgetLeft?: NanoYuan | undefined;
  /** Minutes since the epoch. */
  minute: number;
  /** Reserve neither an amount nor a plan slot: official calls, and free calls of keys with limits. */
  takesNothing: boolean;
}

/** How a call is paid: by a plan slot or by an amount. A low balance may lower the output limit. */
export interface CallPayment {
  slot?: PlanSlot | undefined;
  amount: NanoYuan;
  /** The write is refused if less than this is available: the amount, and what it has to leave to others. */
  atLeast: NanoYuan;
  /** Output tokens per answer that the amount covers; undefined: as many as requested. */
  limitedTo?: number | undefined;
  /** What lowered the limit. */
  limitedBy?: 'balance' | 'budget' | undefined;
}

/** `reserved`: calls under way hold what this call needs, so it may be made later. */
export type ReserveRefusal =
  | { reason: 'quota' | 'reserved'; available: NanoYuan; need: NanoYuan }
  | { reason: 'concurrency' }
  | { reason: 'budget'; left: NanoYuan; need: NanoYuan; isShared?: boolean }
  | { reason: 'rate' | 'account_rpm' | 'account_tpm' }
  | { reason: 'open_entries' };

/** `lastTry`: others took what this call wanted each time, so it is content with the least that it needs. */
export interface ReserveTry {
  lastTry?: boolean;
}

/** The maximum cost of the call, reserved from the balance while the call runs. */
export function amountOf(price: Price, { inputTokensMax, n, outputTokensMax }: CallEstimate): NanoYuan {
  return mostCost(price, inputTokensMax, n * outputTokensMax);
}

/**
 * Decides how to pay for a call, based on the known state of a part of the account, or why to refuse it. The
 * limits of the need are those of the part.
 */
export function planReserve(
  need: ReserveNeed,
  item: QuotaItem,
  { lastTry = false }: ReserveTry = {},
): CallPayment | ReserveRefusal {
  if (item.open.size >= (need.accountConcurrency ?? Infinity)) return { reason: 'open_entries' };
  if ((item.places.get(need.key)?.size ?? 0) >= (need.maxConcurrency ?? Infinity))
    return { reason: 'concurrency' };
  const { rate } = item;
  // A part without a share refuses the first call of a minute, too.
  const { count, tokens = 0 } = rate && rate.minute >= need.minute ? rate : noCalls;
  if (count >= (need.accountRpm ?? Infinity)) return { reason: 'account_rpm' };
  if (tokens >= (need.accountTpm ?? Infinity)) return { reason: 'account_tpm' };
  if (need.takesNothing) return nothing;
  const slot = need.slots.find(({ key, limit }) => limit === null || (item.plan.get(key) ?? 0) < limit);
  return slot ? { slot, ...nothing } : payFromBalance(need, item, lastTry);
}

const nothing = { amount: 0n, atLeast: 0n } as const;
const noCalls: Pick<RateCount, 'count' | 'tokens'> = { count: 0 };

/**
 * A call holds at most half of what is free, of the balance and of the key's budget, so that one call does not
 * silence all others, but never less than it needs for the fewest tokens. A limit that the client asked for is held
 * whole.
 */
function payFromBalance(need: ReserveNeed, item: QuotaItem, lastTry: boolean): CallPayment | ReserveRefusal {
  const { budgetLeft } = need;
  const costs = [need, ...(need.others ?? [])];
  const most = costs.map(mostOf).reduce(larger);
  if (most === 0n) return nothing;
  const { available } = item;
  const least = costs.map(leastAmount).reduce(larger);
  if (budgetLeft !== undefined && budgetLeft < least)
    return { reason: 'budget', left: budgetLeft, need: least };
  if (available < least)
    return { reason: available + reservedOf(item) < least ? 'quota' : 'reserved', available, need: least };
  const isWhole = costs.every((cost) => outputRate(cost) === 0n || cost.estimate.heldWhole);
  // What is free of a split account is about as much in each of its parts.
  const parts = BigInt(item.parts);
  const shareOfFree = (free: NanoYuan, copies: bigint): NanoYuan => {
    if (isWhole && free >= most) return most;
    return smaller(most, lastTry ? least : larger(least, smaller(free, (free * copies) / 2n)));
  };
  const ofBalance = shareOfFree(available, parts);
  const amount = budgetLeft === undefined ? ofBalance : smaller(ofBalance, shareOfFree(budgetLeft, 1n));
  const leavesNone = amount === least || (isWhole && amount === most);
  const atLeast = leavesNone ? amount : larger(amount, (2n * amount) / parts);
  if (amount === most) return { amount, atLeast };
  const limitedBy = amount < ofBalance ? 'budget' : 'balance';
  const short = costs.filter((cost) => mostOf(cost) > amount);
  const limitedTo = Math.min(...short.map((cost) => tokensFor(cost, amount)));
  return { amount, atLeast, limitedTo, limitedBy };
}

const mostOf = ({ price, estimate }: ModelCost): NanoYuan => amountOf(price, estimate);

/** What the fewest tokens cost for which the call is made. */
function leastAmount(cost: ModelCost): NanoYuan {
  const { price, estimate } = cost;
  if (outputRate(cost) === 0n) return mostOf(cost);
  const { outputTokensMax, outputTokensLeast } = estimate;
  return amountOf(price, { ...estimate, outputTokensMax: Math.min(outputTokensMax, outputTokensLeast) });
}

/** Output tokens of one answer that an amount covers, which covers the input. */
function tokensFor(cost: ModelCost, amount: NanoYuan): number {
  const { price, estimate } = cost;
  const rest = amount - amountOf(price, { ...estimate, outputTokensMax: 0 });
  return Number((rest * 1_000_000n) / (outputRate(cost) * BigInt(estimate.n)));
}

/** The highest price of 1,000 output tokens. Zero: the price does not grow with the output. */
const outputRate = ({ price, estimate }: ModelCost): bigint =>
  price.type === 'token-billing' ? mostRates(price.tiers, estimate.inputTokensMax).output : 0n;

export const isRefusal = (plan: CallPayment | ReserveRefusal): plan is ReserveRefusal => 'reason' in plan;

/** What the whole account is short of, whichever of its keys calls. */
export const isOfAccount = ({ reason }: ReserveRefusal): boolean =>
  reason !== 'concurrency' && reason !== 'rate' && reason !== 'budget';

/** What the balance is short of. */
export const isForMoney = (
  refusal: ReserveRefusal,
): refusal is Extract<ReserveRefusal, { reason: 'quota' | 'reserved' }> =>
  refusal.reason === 'quota' || refusal.reason === 'reserved';
