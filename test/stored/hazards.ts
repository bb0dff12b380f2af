import type { Clock } from '../../shared/relay/ports/host.ts';
import { StoreBusy, StoreUnavailable } from '../../shared/relay/ports/store-errors.ts';
import type { SeededRandom } from '../simulation/seeded-random.ts';
import type { MemoryStored } from '../support/memory-stored.ts';

export interface Fate {
  /** Probabilities for each store call: rejected, never answered, or done without a reply. */
  chance: number;
  /** The number of the call at which the process dies or freezes. */
  fatalAt: number;
  /** How long it freezes. Infinity means that it dies. */
  stillMs: number;
  /** The error of its clock. */
  skewMs: number;
  /** The number of the first call of a temporary outage. Absent if there is none. */
  downAt?: number;
  downMs?: number;
  /** Maximum duration of a call. Absent for none. */
  slowMs?: number;
}

export const unharmed: Fate = { chance: 0, fatalAt: Infinity, stillMs: 0, skewMs: 0 };

const never = (): Promise<never> => new Promise(() => {});

/** The faults of a process: its stores reject calls or lose replies, and at one call it dies or freezes. */
export class Hazards {
  readonly #clock: Clock;
  readonly #random: SeededRandom;
  readonly #fate: Fate;
  #calls = 0;
  #stillUntilMs = 0;
  #downUntilMs = 0;
  faults = 0;

  constructor(clock: Clock, random: SeededRandom, fate: Fate) {
    this.#clock = clock;
    this.#random = random;
    this.#fate = fate;
  }

  /** Resolves when the process dies and its connections break. */
  readonly died = Promise.withResolvers<void>();

  get isDead(): boolean {
    return this.#stillUntilMs === Infinity;
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

  /** The same store with the faults of the process. @param isBusy it reports when it has changed nothing */
  around<T extends object>(store: T, isBusy = true): T {
    return new Proxy(store, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        return typeof value === 'function'
          ? (...given: unknown[]) => this.#meet(() => Reflect.apply(value, target, given) as unknown, isBusy)
          : value;
      },
    });
  }

  /** All stores of stored responses, except the start of runs. */
  aroundStored({ responses, runs, events, results }: MemoryStored) {
    return {
      responses: this.around(responses),
      runs: this.around(runs),
      events: this.around(events),
      results: this.around(results),
    };
  }

  async #meet(work: () => unknown, isBusy: boolean): Promise<unknown> {
    await this.#awake();
    this.#calls += 1;
    const isFatal = this.#calls === this.#fate.fatalAt;
    const isBefore = this.#random.chance(0.5);
    if (isFatal && isBefore) await this.#befall();
    const { slowMs, downAt, downMs = 0, chance } = this.#fate;
    if (slowMs !== undefined) await this.#clock.sleep(this.#random.integer(0, slowMs));
    if (this.#calls === downAt) this.#downUntilMs = this.#clock.now() + downMs;
    const isDown = this.#clock.now() < this.#downUntilMs;
    const fault = isDown || this.#random.chance(chance) ? this.#random.integer(0, 2) : undefined;
    if (fault !== undefined) this.faults += 1;
    if (fault === 0 && isBusy) throw new StoreBusy('throttled');
    if (fault === 0 || fault === 1) throw new StoreUnavailable('no reply');
    const result = await work();
    if (isFatal && !isBefore) await this.#befall();
    await this.#awake();
    if (fault === 2) throw new StoreUnavailable('no reply');
    return result;
  }

  async #befall(): Promise<void> {
    this.#stillUntilMs = this.#clock.now() + this.#fate.stillMs;
    if (this.#stillUntilMs === Infinity) this.died.resolve();
    await this.#awake();
  }

  async #awake(): Promise<void> {
    if (this.#stillUntilMs === Infinity) await never();
    while (this.#clock.now() < this.#stillUntilMs)
      await this.#clock.sleep(this.#stillUntilMs - this.#clock.now());
  }
}
