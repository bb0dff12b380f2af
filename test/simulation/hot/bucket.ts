import type { Clock } from '../../../shared/relay/ports/host.ts';
import { StoreBusy } from '../../../shared/relay/ports/store-errors.ts';

/** The write units per second of one DynamoDB partition. */
export const writeUnitsPerSecond = 1_000;

/** Units that refill with time, up to a second's worth. */
export class Bucket {
  readonly #clock: Clock;
  readonly #perSecond: number;
  #tokens: number;
  #lastMs: number;
  readonly used = new Map<number, number>();
  throttled = 0;

  constructor(clock: Clock, perSecond: number) {
    this.#clock = clock;
    this.#perSecond = perSecond;
    this.#tokens = perSecond;
    this.#lastMs = clock.now();
  }

  get isEmpty(): boolean {
    const now = this.#clock.now();
    this.#tokens = Math.min(this.#perSecond, this.#tokens + ((now - this.#lastMs) / 1000) * this.#perSecond);
    this.#lastMs = now;
    return this.#tokens <= 0;
  }

  take(units: number): void {
    if (this.isEmpty) {
      this.throttled += 1;
      throw new StoreBusy('throttled');
    }
    this.pay(units);
  }

  /** May exceed the available units: the store worked before it knew the cost. */
  pay(units: number): void {
    this.#tokens -= units;
    const second = Math.floor(this.#clock.now() / 1000);
    this.used.set(second, (this.used.get(second) ?? 0) + units);
  }
}
