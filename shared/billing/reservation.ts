import { divideHalfUp, larger, smaller, type NanoYuan } from './amount.ts';
import type { PlanSlot } from './plan-slots.ts';
import { costOf, type Price } from './price.ts';
import { reservedOf, type QuotaItem } from './quota-item.ts';

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

/** What a call needs from the account's item. */
export interface ReserveNeed {
  id: string;
  price: Price;
  /** Plan slots that cover the model, in row order. */
  slots: readonly PlanSlot[];
  estimate: CallEstimate;
  key: string;
  /** How many calls of the key may run at once. */
  maxConcurrency?: number | undefined;
  /** How many calls of the account may run at once. */
  accountConcurrency?: number | undefined;
  rpm?: number | undefined;
  /** Minutes since the epoch. */
  minute: number;
  /** Reserve neither an amount nor a plan slot: official calls, and free calls of keys with limits. */
  takesNothing: boolean;
}

/** How a call is paid: by a plan slot or by an amount. A low balance may lower the output limit. */
export interface Payment {
  slot?: PlanSlot | undefined;
  amount: NanoYuan;
  /** The write is refused if less than this is available: the amount, and what it has to leave to others. */
  atLeast: NanoYuan;
  /** Output tokens per answer that the amount covers; undefined: as many as requested. */
  limitedTo?: number | undefined;
}

/** `reserved`: calls under way hold what this call needs, so it may be made later. */
export type ReserveRefusal =
  | { reason: 'quota' | 'reserved'; available: NanoYuan; need: NanoYuan }
  | { reason: 'concurrency' }
  | { reason: 'rate' }
  | { reason: 'open_entries' };

/** `lastTry`: others took what this call wanted each time, so it is content with the least that it needs. */
export interface ReserveTry {
  lastTry?: boolean;
}

/** The maximum cost of the call, reserved from the balance while the call runs. */
export function amountOf(price: Price, { inputTokensMax, n, outputTokensMax }: CallEstimate): NanoYuan {
  return costOf(price, { prompt_tokens: inputTokensMax, completion_tokens: n * outputTokensMax });
}

/**
 * Decides how to pay for a call, based on the known state of a part of the account, or why to refuse it. The
 * limits of the need are those of the part.
 */
export function planReserve(
  need: ReserveNeed,
  item: QuotaItem,
  { lastTry = false }: ReserveTry = {},
): Payment | ReserveRefusal {
  if (item.open.size >= (need.accountConcurrency ?? Infinity)) return { reason: 'open_entries' };
  if ((item.places.get(need.key)?.size ?? 0) >= (need.maxConcurrency ?? Infinity))
    return { reason: 'concurrency' };
  const rate = item.rate.get(need.key);
  if (need.rpm !== undefined && rate && rate.minute >= need.minute && rate.count >= need.rpm)
    return { reason: 'rate' };
  if (need.takesNothing) return nothing;
  const slot = need.slots.find(({ key, limit }) => limit === null || (item.plan.get(key) ?? 0) < limit);
  return slot ? { slot, ...nothing } : payFromBalance(need, item, lastTry);
}

const nothing = { amount: 0n, atLeast: 0n } as const;

/**
 * A call holds at most half of what is free, so that one call does not silence all others, but never less than
 * it needs for the fewest tokens. A limit that the client asked for is held whole.
 */
function payFromBalance(need: ReserveNeed, item: QuotaItem, lastTry: boolean): Payment | ReserveRefusal {
  const { price, estimate } = need;
  const most = amountOf(price, estimate);
  if (most === 0n) return nothing;
  const { available } = item;
  const perToken = price.type === 'token-billing' && price.output > 0n;
  const least = perToken ? amountOf(price, { ...estimate, outputTokensMax: leastOf(estimate) }) : most;
  if (available < least)
    return { reason: available + reservedOf(item) < least ? 'quota' : 'reserved', available, need: least };
  const isWhole = !perToken || estimate.heldWhole;
  if (isWhole && available >= most) return { amount: most, atLeast: most };
  // What is free of a split account is about as much in each of its parts.
  const parts = BigInt(item.parts);
  const half = lastTry ? least : larger(least, smaller(available, (available * parts) / 2n));
  const amount = smaller(most, half);
  const atLeast = amount === least ? least : larger(amount, (2n * amount) / parts);
  return amount === most ? { amount, atLeast } : { amount, atLeast, limitedTo: tokensFor(need, amount) };
}

const leastOf = ({ outputTokensMax, outputTokensLeast }: CallEstimate): number =>
  Math.min(outputTokensMax, outputTokensLeast);

/** Output tokens of one answer that an amount covers, which covers the input. */
function tokensFor({ price, estimate }: ReserveNeed, amount: NanoYuan): number {
  if (price.type !== 'token-billing') return 0;
  const rest = amount - amountOf(price, { ...estimate, outputTokensMax: 0 });
  return Number((rest * 1_000_000n) / (price.output * BigInt(estimate.n)));
}

export const isRefusal = (plan: Payment | ReserveRefusal): plan is ReserveRefusal => 'reason' in plan;

/** The cost of the input alone. */
export const inputCost = (price: Price, inputTokens: number): NanoYuan =>
  price.type === 'token-billing' ? divideHalfUp(price.input * BigInt(inputTokens), 1_000_000n) : 0n;

/** What the balance is short of. */
export const isForMoney = (
  refusal: ReserveRefusal,
): refusal is Extract<ReserveRefusal, { reason: 'quota' | 'reserved' }> =>
  refusal.reason === 'quota' || refusal.reason === 'reserved';
