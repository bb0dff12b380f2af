import { budgetUseOf, type CloseRow } from '../../../shared/billing/ledger-row.ts';
import type { Clock } from '../../../shared/relay/ports/host.ts';
import type { KeyCounters } from '../../../shared/relay/ports/runtime-stores.ts';
import { MemoryKeyCounters } from '../../support/memory-key-counters.ts';
import { Bucket, writeUnitsPerSecond } from './bucket.ts';

/**
 * The counters of a key are items of another table, so they use nothing of the account's partition. The counter of a
 * budget is one item, which never gets faster either.
 */
export class PricedCounters implements KeyCounters {
  readonly inner = new MemoryKeyCounters();
  readonly writes: Bucket;
  readonly #clock: Clock;
  readonly #random: () => number;

  constructor(clock: Clock, random: () => number) {
    this.#clock = clock;
    this.#random = random;
    this.writes = new Bucket(clock, writeUnitsPerSecond);
  }

  countCall: KeyCounters['countCall'] = (...call) => this.#write(1, () => this.inner.countCall(...call));
  hold: KeyCounters['hold'] = (...hold) => this.#write(1, () => this.inner.hold(...hold));
  use: KeyCounters['use'] = (counter) => this.inner.use(counter);
  change: KeyCounters['change'] = (...change) => this.#write(1, () => this.inner.change(...change));

  /** The projector's work a moment after a close, in the transaction that puts the ledger row. */
  async project(row: CloseRow): Promise<void> {
    const { key, budget: period } = row;
    if (period === undefined) return;
    await this.#clock.sleep(200 + 800 * this.#random());
    await this.#write(2, () => this.inner.change({ key, period, expires: 0 }, budgetUseOf(row)));
  }

  async #write<T>(units: number, act: () => Promise<T>): Promise<T> {
    await this.#clock.sleep(2 + 4 * this.#random());
    this.writes.take(units);
    return act();
  }
}
