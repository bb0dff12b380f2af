import { smaller, type NanoYuan } from './amount.ts';
import type { PlanSlot } from './plan-slots.ts';
import { mostCost, mostRates, type Price } from './price.ts';
import { openEntriesMax, type QuotaItem } from './quota-item.ts';

/** The estimated size of a call, before the upstream is called. Token counts are whole. */
export interface CallEstimate {
  /** The best estimate of the input. */
  inputTokens: number;
  /** An upper bound of the input. */
  inputTokensMax: number;
  /** The number of answers that the client asks for. */
  n: number;
  /** An upper bound of the output tokens of one answer. */
  outputTokensMax: number;
}

/** What a call needs from the account's item. */
export interface ReserveNeed {
  id: string;
  price: Price;
  /** Plan slots that cover the model, in row order. */
  slots: readonly PlanSlot[];
  estimate: CallEstimate;
  key: string;
  maxConcurrency?: number | undefined;
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
  /** Output tokens per answer that the amount covers; undefined: as many as requested. */
  limitedTo?: number | undefined;
}

export type ReserveRefusal =
  | { reason: 'quota'; available: NanoYuan; need: NanoYuan }
  | { reason: 'concurrency' }
  | { reason: 'rate' }
  | { reason: 'open_entries' };

/** A call is refused if its balance covers fewer output tokens, unless the client asked for fewer. */
const outputTokensFloor = 64;

/** The maximum cost of the call, reserved from the balance while the call runs. */
export function amountOf(price: Price, { inputTokensMax, n, outputTokensMax }: CallEstimate): NanoYuan {
  return mostCost(price, inputTokensMax, n * outputTokensMax);
}

/** Decides how to pay for a call, based on the known state of the item, or why to refuse it. */
export function planReserve(need: ReserveNeed, item: QuotaItem): Payment | ReserveRefusal {
  if (item.open.size >= openEntriesMax) return { reason: 'open_entries' };
  if (need.maxConcurrency !== undefined && (item.busy.get(need.key) ?? 0) >= need.maxConcurrency)
    return { reason: 'concurrency' };
  const rate = item.rate.get(need.key);
  if (need.rpm !== undefined && rate && rate.minute >= need.minute && rate.count >= need.rpm)
    return { reason: 'rate' };
  if (need.takesNothing) return { amount: 0n };
  const slot = need.slots.find(({ key, limit }) => limit === null || (item.plan.get(key) ?? 0) < limit);
  return slot ? { slot, amount: 0n } : payFromBalance(need, item.available);
}

function payFromBalance({ price, estimate }: ReserveNeed, available: NanoYuan): Payment | ReserveRefusal {
  const need = amountOf(price, estimate);
  if (need === 0n || available >= need) return { amount: need };
  const refusal = { reason: 'quota', available, need } as const;
  if (price.type !== 'token-billing') return refusal;
  const { output } = mostRates(price.tiers, estimate.inputTokensMax);
  if (output === 0n) return refusal;
  const rest = available - mostCost(price, estimate.inputTokensMax, 0);
  if (rest <= 0n) return refusal;
  const tokens = Number(smaller((rest * 1_000_000n) / (output * BigInt(estimate.n)), 1_000_000_000n));
  if (tokens < Math.min(outputTokensFloor, estimate.outputTokensMax)) return refusal;
  return { amount: available, limitedTo: tokens };
}

export const isRefusal = (plan: Payment | ReserveRefusal): plan is ReserveRefusal => 'reason' in plan;
