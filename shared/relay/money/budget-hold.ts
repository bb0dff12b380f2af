/**
 * Holds what a call may spend in its key's budget, before the same amount is taken from the balance. What the call
 * does not spend is given free by the projector, together with the ledger row, so exactly once. A crash between the
 * two holds leaves the amount held until the period ends: a budget is never exceeded.
 */
import type { NanoYuan } from '../../billing/money.ts';
import type { BudgetUse } from '../../billing/ledger-row.ts';
import type { KeyCounters } from '../ports/runtime-stores.ts';
import { StoreUnavailable } from '../ports/store-errors.ts';
import type { Backoff } from '../retry.ts';
import type { CallBudget } from './open-reservation.ts';

export class BudgetHold {
  readonly budget: CallBudget;
  readonly #counters: KeyCounters;
  readonly #backoff: Backoff;
  #amount = 0n;
  #holds = 0;
  #use: BudgetUse = { used: 0n, running: 0 };
  #isKnown = false;

  constructor(counters: KeyCounters, backoff: Backoff, budget: CallBudget) {
    this.#counters = counters;
    this.#backoff = backoff;
    this.budget = budget;
  }

  /** The remaining budget, as far as known. Nothing is known before the first refusal. */
  get left(): NanoYuan {
    return this.budget.most - this.#use.used + this.#amount;
  }

  /** The amount that all other calls use. Undefined until the store has reported it. */
  get usedByOthers(): NanoYuan | undefined {
    return this.#isKnown ? this.#use.used - this.#amount : undefined;
  }

  /** Other calls under way hold a part of the budget. */
  get isShared(): boolean {
    return this.#use.running > (this.#amount > 0n ? 1 : 0);
  }

  /** Reserves the amount if the budget covers it. */
  async covers(amount: NanoYuan): Promise<boolean> {
    if (amount <= this.#amount) return true;
    await this.release();
    const { counter, most, call } = this.budget;
    this.#holds += 1;
    const hold = { ...counter, name: `${call}#${this.#holds}` };
    const { done, ...use } = await this.#backoff.until(() => this.#counters.hold(hold, amount, most));
    this.#use = use;
    this.#isKnown = true;
    if (done) this.#amount = amount;
    return done;
  }

  /** Frees what is held beyond the amount that was taken from the balance. */
  async keep(amount: NanoYuan): Promise<void> {
    if (amount === this.#amount) return;
    const by = { used: amount - this.#amount, running: amount === 0n ? -1 : 0 };
    this.#amount = amount;
    this.#use = { used: this.#use.used + by.used, running: this.#use.running + by.running };
    // After a lost reply a repeat would free the amount twice.
    const changeOnce = (): Promise<void> =>
      this.#counters.change(this.budget.counter, by).catch((error: unknown) => {
        if (!(error instanceof StoreUnavailable)) throw error;
      });
    await this.#backoff.until(changeOnce).catch(() => {});
  }

  /** Frees all that is held. */
  release(): Promise<void> {
    return this.keep(0n);
  }
}
