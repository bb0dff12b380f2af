import type { Clock } from '../../shared/relay/ports/clock.ts';
import { StoreBusy, StoreUnavailable } from '../../shared/relay/ports/stores/store-errors.ts';
import type { SeededRandom } from '../simulation/seeded-random.ts';

export interface Fate {
  /** Of each call of a store: that it is refused, never answered, or done without a reply. */
  chance: number;
  /** The number of the call at which the process dies or stands still. */
  fatalAt: number;
  /** How long it stands still. Infinity: it dies. */
  stillMs: number;
  /** By how much its clock is off. */
  skewMs: number;
}

export const unharmed: Fate = { chance: 0, fatalAt: Infinity, stillMs: 0, skewMs: 0 };

const never = (): Promise<never> => new Promise(() => {});

/** What befalls a process: its stores refuse, lose replies, and at one of its calls it dies, or stands still. */
export class Hazards {
  readonly #clock: Clock;
  readonly #random: SeededRandom;
  readonly #fate: Fate;
  #calls = 0;
  #stillUntilMs = 0;
  faults = 0;

  constructor(clock: Clock, random: SeededRandom, fate: Fate) {
    this.#clock = clock;
    this.#random = random;
    this.#fate = fate;
  }

  get happened(): boolean {
    return this.#stillUntilMs > 0;
  }

  /** The process's own clock. */
  readonly clock: Clock = {
    now: () => this.#clock.now() + this.#fate.skewMs,
    sleep: async (milliseconds, signal) => {
      await this.#clock.sleep(milliseconds, signal);
      await this.#awake();
    },
  };

  /** The same store, as the process meets it. */
  around<T extends object>(store: T): T {
    return new Proxy(store, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        return typeof value === 'function'
          ? (...given: unknown[]) => this.#meet(() => (value as (...all: unknown[]) => unknown)(...given))
          : value;
      },
    });
  }

  async #meet(work: () => unknown): Promise<unknown> {
    await this.#awake();
    this.#calls += 1;
    const isFatal = this.#calls === this.#fate.fatalAt;
    const isBefore = this.#random.chance(0.5);
    if (isFatal && isBefore) await this.#befall();
    const fault = this.#random.chance(this.#fate.chance) ? this.#random.integer(0, 2) : undefined;
    if (fault !== undefined) this.faults += 1;
    if (fault === 0) throw new StoreBusy('throttled');
    if (fault === 1) throw new StoreUnavailable('no reply');
    const result = await work();
    if (isFatal && !isBefore) await this.#befall();
    await this.#awake();
    if (fault === 2) throw new StoreUnavailable('no reply');
    return result;
  }

  async #befall(): Promise<void> {
    this.#stillUntilMs = this.#clock.now() + this.#fate.stillMs;
    await this.#awake();
  }

  async #awake(): Promise<void> {
    if (this.#stillUntilMs === Infinity) await never();
    while (this.#clock.now() < this.#stillUntilMs)
      await this.#clock.sleep(this.#stillUntilMs - this.#clock.now());
  }
}
