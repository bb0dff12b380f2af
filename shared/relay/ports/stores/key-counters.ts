/**
 * Counters of keys that have a limit of their own. They are items of their own and expire, so that an account's
 * item does not grow with its keys. The suite in `test/contract/key-counters.ts` defines the contract.
 */
import type { NanoYuan } from '../../../billing/amount.ts';
import type { BudgetUse } from '../../../billing/budget-use.ts';

/** One period of one key's budget. */
export interface BudgetCounter {
  /** First 12 hex digits of the key's hash. */
  key: string;
  /** As in `BudgetPeriod`. */
  period: string;
  /** Unix seconds: when the counter may be removed. */
  expires: number;
}

/** One hold of a call in a budget. */
export interface NamedHold extends BudgetCounter {
  /** Unlike that of any other hold. */
  name: string;
}

export interface KeyCounters {
  /**
   * Counts one call in a minute of a key (minutes since the epoch) if fewer than `max` are counted. A repeat after a
   * lost reply counts twice. Returns the count; undefined: the minute is full.
   */
  countCall(key: string, minute: number, max: number): Promise<number | undefined>;
  /**
   * Holds an amount if the budget `most` covers what is used and the amount. `done: false`: nothing was held. A repeat
   * holds nothing more, unless another hold came between.
   */
  hold(hold: NamedHold, amount: NanoYuan, most: NanoYuan): Promise<BudgetUse & { done: boolean }>;
  /** Changes what is held and how many calls hold it, without a condition. Throws StoreBusy if it changed nothing. */
  change(counter: BudgetCounter, by: BudgetUse): Promise<void>;
}
