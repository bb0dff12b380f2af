import type { BudgetUse } from '../../shared/billing/ledger-row.ts';
import type { KeyCounters } from '../../shared/relay/ports/runtime-stores.ts';
import { StoreBusy } from '../../shared/relay/ports/store-errors.ts';
import { MemoryKeyCounters } from '../support/memory-key-counters.ts';
import type { Mutation } from './mutations.ts';
import type { Network } from './networked-store.ts';

/** The counters of keys in `runtime`, and access to them. */
export class StoredCounters extends MemoryKeyCounters {
  /**
   * Keys, and accounts with budgets by tag, whose budgets may hold more than calls know, because a write's outcome is
   * unknown.
   */
  readonly inexact = new Set<string>();
  readonly #pending = new Map<string, number>();
  readonly #mutation: Mutation | undefined;
  readonly #changed: (key: string) => void;

  constructor(mutation: Mutation | undefined, changed: (key: string) => void) {
    super();
    this.#mutation = mutation;
    this.#changed = changed;
  }

  /** The change by a ledger row or a late charge, in the same transaction. */
  count(counter: string, { used, running }: BudgetUse): void {
    if (this.#mutation?.losesBudgetCount) return;
    const name = counter.replace(' ', '#');
    const use = this.budgets.get(name) ?? { used: 0n, running: 0 };
    this.budgets.set(name, { used: use.used + used, running: use.running + running });
  }

  usedOf(key: string, period: string): bigint {
    return this.budgets.get(`${key}#${period}`)?.used ?? 0n;
  }

  runningOf(key: string, period: string): number {
    return this.budgets.get(`${key}#${period}`)?.running ?? 0;
  }

  /** Every write on the counter was answered, and no call of its key or account died between two of them. */
  isExact(key: string, account?: string): boolean {
    const isKnown = !this.inexact.has(key) && !(account !== undefined && this.inexact.has(account));
    return isKnown && (this.#pending.get(key) ?? 0) === 0;
  }

  #pend(key: string, by: number): void {
    this.#pending.set(key, (this.#pending.get(key) ?? 0) + by);
  }

  reachedBy(network: Network): KeyCounters {
    const send = async <T>(key: string, act: () => Promise<T>, isRepeated: boolean): Promise<T> => {
      this.#pend(key, 1);
      try {
        const reply = await network.send(act);
        this.#pend(key, -1);
        return reply;
      } catch (error) {
        if (isRepeated && error instanceof StoreBusy) this.#pend(key, -1);
        throw error;
      }
    };
    const reporting =
      <T>(key: string, act: () => Promise<T>) =>
      (): Promise<T> => {
        const reply = act();
        this.#changed(key);
        return reply;
      };
    return {
      countCall: (key, minute, max) => network.send(() => this.countCall(key, minute, max)),
      hold: (counter, amount, most) => {
        const isHeld = this.#mutation?.holdsNoBudget !== true;
        const hold = (): ReturnType<KeyCounters['hold']> => this.hold(counter, isHeld ? amount : 0n, most);
        return send(counter.key, reporting(counter.key, hold), true);
      },
      use: (counter) => network.send(() => this.use(counter)),
      change: (counter, by) =>
        send(
          counter.key,
          reporting(counter.key, () => this.change(counter, by)),
          false,
        ),
    };
  }
}
