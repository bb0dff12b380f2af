/**
 * Reserves in its budgets what a call may spend, before taking the same amount from the balance. The projector frees what the call does
 * not spend, together with the ledger row, so exactly once. A crash between the two holds leaves the amount held until the period ends:
 * a budget is never exceeded.
 */
import type { NanoYuan } from '../../billing/money.ts';
import type { BudgetUse } from '../../billing/ledger-row.ts';
import type { KeyCounters } from '../ports/runtime-stores.ts';
import { StoreUnavailable } from '../ports/store-errors.ts';
import type { Backoff } from '../retry.ts';
import type { Budget, ReservationRequest } from './open-reservation.ts';

/** The holds of one call. It holds its amount in all of its budgets, or in none. */
export class BudgetHolds {
  readonly #holds: readonly BudgetHold[];

  constructor(
    counters: KeyCounters,
    backoff: Backoff,
    { budgets = [], holdName, need }: Pick<ReservationRequest, 'budgets' | 'holdName' | 'need'>,
  ) {
    this.#holds = budgets.map((budget) => new BudgetHold(counters, backoff, budget, holdName ?? need.id));
  }

  /** The budget with the least left. */
  get tightest(): BudgetHold | undefined {
    return this.#holds.toSorted((a, b) => (a.left < b.left ? -1 : Number(a.left > b.left)))[0];
  }

  get ofKey(): BudgetHold | undefined {
    return this.#holds.find(({ budget }) => !budget.of);
  }

  /** Reserves the amount if all budgets cover it, else frees it at once, because other calls may need it. */
  async tryHold(amount: NanoYuan): Promise<boolean> {
    const held = await Promise.allSettled(this.#holds.map((hold) => hold.tryHold(amount)));
    const failed = held.find((each) => each.status === 'rejected');
    if (failed) throw failed.reason;
    if (held.every((each) => each.status === 'fulfilled' && each.value)) return true;
    await this.reduceTo(0n);
    return false;
  }

  /** Reads what other calls use, for the message of a refusal. */
  async readUse(): Promise<void> {
    await Promise.all(this.#holds.map((hold) => hold.readUse()));
  }

  /** Frees what is held beyond the amount that was taken from the balance. */
  async reduceTo(amount: NanoYuan): Promise<void> {
    await Promise.all(this.#holds.map((hold) => hold.reduceTo(amount)));
  }
}

class BudgetHold {
  readonly budget: Budget;
  readonly #counters: KeyCounters;
  readonly #backoff: Backoff;
  readonly #name: string;
  #amount = 0n;
  #holdCount = 0;
  #use: BudgetUse = { used: 0n, running: 0 };
  #isKnown = false;

  constructor(counters: KeyCounters, backoff: Backoff, budget: Budget, name: string) {
    this.#counters = counters;
    this.#backoff = backoff;
    this.budget = budget;
    this.#name = name;
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

  async readUse(): Promise<void> {
    if (!this.#isKnown) this.#use = await this.#backoff.until(() => this.#counters.use(this.budget.counter));
    this.#isKnown = true;
  }

  /** Reserves the amount if the budget covers it. */
  async tryHold(amount: NanoYuan): Promise<boolean> {
    if (amount <= this.#amount) return true;
    await this.reduceTo(0n);
    const { counter, most } = this.budget;
    this.#holdCount += 1;
    const hold = { ...counter, name: `${this.#name}#${this.#holdCount}` };
    const { done, ...use } = await this.#backoff.until(() => this.#counters.hold(hold, amount, most));
    this.#use = use;
    this.#isKnown = true;
    if (done) this.#amount = amount;
    return done;
  }

  async reduceTo(amount: NanoYuan): Promise<void> {
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
}
