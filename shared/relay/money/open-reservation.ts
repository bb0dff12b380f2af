/** The request for a reservation, and its result. */
import type { NanoYuan } from '../../billing/money.ts';
import type { AccountBudget } from '../../config/rows/account-row.ts';
import type { OpenEntry, QuotaItem } from '../../billing/quota-item.ts';
import type { CallPayment, ReserveNeed, ReserveRefusal } from '../../billing/reservation.ts';
import type { Refusal } from '../http/refusal.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import type { BudgetCounter } from '../ports/runtime-stores.ts';
import type { Backoff } from '../retry.ts';

export type ReservationsPorts = Pick<
  ChatPorts,
  'clock' | 'random' | 'repeats' | 'quotas' | 'counters' | 'log'
>;

/** A budget in one period. */
export interface Budget {
  /** The tag or end user; missing for the key's own budget. */
  of?: Pick<AccountBudget, 'by' | 'name'> | undefined;
  period: 'day' | 'month';
  counter: BudgetCounter;
  most: NanoYuan;
  resetsAtMs: number;
}

/** The amount needed and the other fields of the open entry. */
export interface ReservationRequest {
  account: string;
  /** The number of shards when the key was read; default 1. */
  shardCount?: number | undefined;
  /** When the call must end, in epoch milliseconds. */
  deadlineMs: number;
  need: ReserveNeed;
  /** The key's limit of calls a minute. */
  rpm?: number | undefined;
  /** The call's number in the key's minute, once it is admitted and if the key has a limit. */
  rateCount?: number | undefined;
  /** All budgets that the call counts toward. */
  budgets?: readonly Budget[] | undefined;
  /** The name of one try's holds in budgets. Default: the request's id. A second hold with the same name would count as a repeat. */
  holdName?: string | undefined;
  /**
   * A caller that can wait: retries until this time (epoch milliseconds) or the signal, because slots free up
   * within moments.
   */
  waiting?: { untilMs: number; signal: AbortSignal } | undefined;
  /** The shard in which an earlier version reserved under the same id: the call takes that reservation for its own. */
  shard?: number | undefined;
  entry: Pick<OpenEntry, 'input' | 'searchPrice' | 'key' | 'model' | 'price' | 'tariff' | 'official'>;
  /** The refusal that the caller gets. `item`: the sums of the account at that time. */
  createRefusal(reason: ReserveFailure, item: QuotaItem): Promise<Refusal>;
}

/** Why nothing was reserved. `contended`: others were faster each time. */
export type ReserveFailure = ReserveRefusal | SpentBudget | { reason: 'contended' | 'out_of_time' };

/** `isShared`: calls in flight hold a part of the budget, which may be freed. */
interface RefusingBudget {
  budget: Budget;
  left: NanoYuan;
  isShared: boolean;
}

export type SpentBudget = Extract<ReserveRefusal, { reason: 'budget' }> & Partial<RefusingBudget>;

/** @param tightest the budget with the least left */
export const nameBudget = (refusal: ReserveRefusal, tightest: RefusingBudget | undefined): ReserveFailure =>
  refusal.reason === 'budget' && tightest
    ? { ...refusal, budget: tightest.budget, left: tightest.left, isShared: tightest.isShared }
    : refusal;

/** An open reservation, held by the call that made it. */
export interface Reservation {
  account: string;
  /** The shard of the account that has the entry. The id names it for life. */
  shard: number;
  id: string;
  entry: OpenEntry;
  payment: CallPayment;
  /** The account has a limit of tokens a minute, so the close adds the output. */
  countsTokens: boolean;
  /** Calls of the key in this minute, if it has a limit. */
  rateCount?: number | undefined;
  /** The key's budget without this call. Missing if the key has none, or the store was not asked. */
  budget?: (Budget & { used: NanoYuan }) | undefined;
  /** The shard after the reserve. Missing if the reply was lost and a repeat found the entry. */
  item: QuotaItem | undefined;
  /** Number of tries of this reserve that may still be in flight. They must not reopen the id after the call. */
  triesInFlight: number;
  /** When the host ends the call, in epoch milliseconds: until then the close is repeated. */
  hostDeadlineMs: number;
  /** Other invocations may settle the call, too. */
  isShared?: boolean | undefined;
  /** Work on the account that must end within the invocation, but for which the call does not wait. */
  besides?: Promise<void> | undefined;
}

/** One step of a reserve, for the code that only few reserves need. It is read, and never written: a step returns the next try. */
export interface ReserveStep extends ShardSearch {
  readonly ports: ReservationsPorts;
  readonly request: ReservationRequest;
  /** The shard of the last try. */
  readonly shard: number;
  /** A try may still be applied to `shard`, so the next ones stay there. */
  readonly isPinned: boolean;
  /** One more write is made at most. */
  readonly isLast: boolean;
  /** Repeats what leaves nothing behind that would have to be guarded. */
  readonly reads: Backoff;
  /** Remembers the sums of an account with several shards. */
  keepSums(sums: QuotaItem, shardCount: number): void;
  estimateShard(): QuotaItem;
  /** The need without plan slots that are full in the sum of the shards. */
  needWithRoom(item: Pick<QuotaItem, 'shardCount'>): ReserveNeed;
  /** The refusal of the sums of the account, which is remembered unless it is the key's own. */
  refuse(refusal: ReserveRefusal, sums: QuotaItem): Promise<Refusal>;
}

export interface ShardSearch {
  /** The sums of the account, if one shard refused the call. */
  readonly sums?: QuotaItem | undefined;
  /** Money was moved for this call. */
  readonly hasGathered?: boolean | undefined;
  /** When the search must end, in epoch milliseconds. */
  readonly searchEndMs?: number | undefined;
}

export interface NextTry {
  item: QuotaItem;
  search: ShardSearch;
}

// Converts a reservation to text and back, for invocations that settle a call that another one reserved.

const bigintMark = '\u0000';

export const serializeReservation = (reservation: Reservation): string =>
  JSON.stringify({ ...reservation, item: undefined, besides: undefined, triesInFlight: 0 }, (_name, value) =>
    typeof value === 'bigint' ? `${bigintMark}${value}` : (value as unknown),
  );

export function restoreReservation(text: string, hostDeadlineMs: number): Reservation {
  const restored = JSON.parse(text, (_name, value: unknown) =>
    typeof value === 'string' && value.startsWith(bigintMark) ? BigInt(value.slice(1)) : value,
  ) as Reservation;
  return { ...restored, hostDeadlineMs, isShared: true };
}
