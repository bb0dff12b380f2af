import type { BudgetUse } from '../../shared/billing/ledger-row.ts';
import type { KeyCounters } from '../../shared/relay/ports/runtime-stores.ts';

/** The counters of keys in memory; they pass the same contract as the DynamoDB adapter. */
export class MemoryKeyCounters implements KeyCounters {
  readonly rates = new Map<string, number>();
  readonly budgets = new Map<string, BudgetUse>();
  /** The latest reservation on each budget. */
  readonly #holds = new Map<string, string>();

  async countCall(...[key, minute, max]: Parameters<KeyCounters['countCall']>): Promise<number | undefined> {
    const count = (this.rates.get(`${key}#${minute}`) ?? 0) + 1;
    if (count > max) return undefined;
    this.rates.set(`${key}#${minute}`, count);
    return count;
  }

  async hold(...[hold, amount, most]: Parameters<KeyCounters['hold']>): ReturnType<KeyCounters['hold']> {
    const use = this.#useOf(hold);
    const counter = `${hold.key}#${hold.period}`;
    if (this.#holds.get(counter) === hold.name) return { done: true, ...use };
    if (use.used + amount > most) return { done: false, ...use };
    this.#holds.set(counter, hold.name);
    await this.change(hold, { used: amount, running: 1 });
    return { done: true, ...this.#useOf(hold) };
  }

  async use(counter: Parameters<KeyCounters['use']>[0]): Promise<BudgetUse> {
    return this.#useOf(counter);
  }

  async change(...[counter, by]: Parameters<KeyCounters['change']>): Promise<void> {
    const use = this.#useOf(counter);
    const next = { used: use.used + by.used, running: use.running + by.running };
    this.budgets.set(`${counter.key}#${counter.period}`, next);
  }

  #useOf({ key, period }: { key: string; period: string }): BudgetUse {
    return this.budgets.get(`${key}#${period}`) ?? { used: 0n, running: 0 };
  }
}
