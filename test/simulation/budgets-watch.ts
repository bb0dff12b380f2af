import { namedBudgets } from '../oracle/budgets.ts';
import type { CallAsked } from '../oracle/endings.ts';
import { exactYuan, nano } from '../oracle/exact.ts';
import type { Oracle } from '../oracle/oracle.ts';
import type { Customer } from './accounts.ts';
import type { StoredCounters } from './stored-counters.ts';
import { hold } from './watch.ts';

/** The counters that an entry or a row names: `2026-11-21` is its key's counter, `0a1b...@2026-11` a tag's. */
export const countersOf = ({ key, budget }: { key: string; budget?: string | undefined }): string[] =>
  budget === undefined
    ? []
    : budget.split(' ').map((name) => (name.includes('@') ? name.replace('@', ' ') : `${key} ${name}`));

/** Compares the counters of budgets with the amounts that calls spend and reserve by the oracle. */
export class BudgetsWatch {
  readonly #oracle: Oracle;
  readonly #counters: StoredCounters;
  /** The highest value of each counter. */
  readonly #most = new Map<string, bigint>();
  /** The account and name of each tag counter, and the counter of each name. */
  readonly #names = new Map<string, string>();

  constructor(oracle: Oracle, counters: StoredCounters, customers: readonly Customer[]) {
    this.#oracle = oracle;
    this.#counters = counters;
    for (const { hash, budget } of customers.flatMap(({ keys }) => keys))
      if (budget) this.#most.set(hash.slice(0, 12), nano(exactYuan(budget.amount)));
  }

  /** A counter never falls below the oracle: a call reserves first, and its row returns the unused part. */
  changed(counter: string): void {
    for (const [period, used] of this.#periods(counter)) {
      const counted = this.#counters.usedOf(counter, period);
      hold(counted >= used, `${counter} counts ${counted} of the budget of ${period}, the oracle ${used}`);
    }
  }

  /** A call counts on its key's budget, and on all budgets of its account that name it. */
  reserved(asked: CallAsked, entry: { key: string; amount: bigint; budget?: string | undefined }): void {
    const counters = countersOf(entry);
    const named =
      entry.amount > 0n ? namedBudgets(asked.budgets ?? [], asked.named ?? {}, asked.startedMs) : [];
    const ofTags = counters.filter((name) => !name.startsWith(`${entry.key} `));
    hold(
      named.length === ofTags.length,
      `a call of ${asked.account} counts on ${ofTags.length} budgets by tag, by the oracle on ${named.length}`,
    );
    for (const [at, { of, period, most }] of named.entries()) {
      const [counter = '', itsPeriod = ''] = ofTags[at]?.split(' ') ?? [];
      hold(itsPeriod === period, `${of} counts on the budget of ${itsPeriod}, by the oracle of ${period}`);
      const name = `${asked.account} ${of}`;
      this.#isOne(counter, name);
      this.#most.set(`${counter} ${period}`, most);
    }
    for (const name of counters) {
      const [counter = '', period = ''] = name.split(' ');
      this.changed(counter);
      const { used, overrun } = this.#oracle.budget(name);
      const most = this.#most.get(name) ?? this.#most.get(counter) ?? 0n;
      hold(
        used <= most + overrun,
        `${counter} has spent and holds ${used} of the budget of ${most} in ${period}`,
      );
    }
  }

  /** One counter has one name, and one name has one counter. */
  #isOne(counter: string, name: string): void {
    for (const [from, to] of [
      [counter, name],
      [name, counter],
    ] as const) {
      const known = this.#names.get(from) ?? to;
      hold(known === to, `${from} is the budget of ${known} and of ${to}`);
      this.#names.set(from, to);
    }
  }

  /**
   * At the end counters have the spent amounts, unless the outcome of a write is unknown. Returns the number of exact
   * ones.
   */
  ended(): number {
    const counters = new Set([...this.#oracle.budgets.keys()].map((name) => name.split(' ')[0] ?? ''));
    const exact = [...counters].filter((counter) =>
      this.#counters.isExact(counter, this.#names.get(counter)?.split(' ')[0]),
    );
    for (const counter of exact)
      for (const [period, used] of this.#periods(counter)) {
        const counted = this.#counters.usedOf(counter, period);
        hold(
          counted === used,
          `${counter} counts ${counted} of the budget of ${period} at the end, the oracle ${used}`,
        );
        const running = this.#counters.runningOf(counter, period);
        hold(
          running === 0,
          `${counter} counts ${running} running calls on the budget of ${period} at the end`,
        );
      }
    return exact.length;
  }

  /** The number of tag budgets that calls used. */
  get tagged(): number {
    return this.#names.size / 2;
  }

  #periods(counter: string): [string, bigint][] {
    const all = [...this.#oracle.budgets].map(([name, { used }]) => [name.split(' '), used] as const);
    return all.flatMap(([[of, period = ''], used]) => (of === counter ? [[period, used]] : []));
  }
}
