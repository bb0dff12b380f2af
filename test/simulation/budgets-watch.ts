import { exactYuan, nano } from '../oracle/exact.ts';
import type { Oracle } from '../oracle/oracle.ts';
import type { Customer } from './accounts.ts';
import type { StoredCounters } from './stored-counters.ts';
import { hold } from './watch.ts';

/** Compares the counters of budgets with what calls spent and hold by the oracle. */
export class BudgetsWatch {
  readonly #oracle: Oracle;
  readonly #counters: StoredCounters;
  /** By key. */
  readonly #most = new Map<string, bigint>();

  constructor(oracle: Oracle, counters: StoredCounters, customers: readonly Customer[]) {
    this.#oracle = oracle;
    this.#counters = counters;
    for (const { hash, budget } of customers.flatMap(({ keys }) => keys))
      if (budget) this.#most.set(hash.slice(0, 12), nano(exactYuan(budget.amount)));
  }

  /** A counter never has less: a call holds before it reserves, and a row frees what its call did not use. */
  changed(key: string): void {
    for (const [period, used] of this.#periods(key)) {
      const counted = this.#counters.usedOf(key, period);
      hold(counted >= used, `${key} counts ${counted} of the budget of ${period}, the oracle ${used}`);
    }
  }

  reserved(key: string, period: string | undefined): void {
    this.changed(key);
    if (period === undefined) return;
    const { used, overrun } = this.#oracle.budget(key, period);
    const most = this.#most.get(key) ?? 0n;
    hold(used <= most + overrun, `${key} has spent and holds ${used} of the budget of ${most}`);
  }

  /** At the end counters have what was spent, but where a write's outcome was unknown. Returns how many were exact. */
  ended(): number {
    const exact = [...this.#most.keys()].filter((key) => this.#counters.isExact(key));
    for (const key of exact)
      for (const [period, used] of this.#periods(key)) {
        const counted = this.#counters.usedOf(key, period);
        hold(
          counted === used,
          `${key} counts ${counted} of the budget of ${period} at the end, the oracle ${used}`,
        );
        const running = this.#counters.runningOf(key, period);
        hold(running === 0, `${key} counts ${running} running calls on the budget of ${period} at the end`);
      }
    return exact.filter((key) => this.#periods(key).length > 0).length;
  }

  #periods(key: string): [string, bigint][] {
    const all = [...this.#oracle.budgets].map(([name, { used }]) => [name.split(' '), used] as const);
    return all.flatMap(([[ofKey, period = ''], used]) => (ofKey === key ? [[period, used]] : []));
  }
}
