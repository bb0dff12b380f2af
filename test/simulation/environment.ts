import type { Clock } from '../../shared/relay/ports/host.ts';
import type { Scheduler } from './scheduler.ts';
import type { SeededRandom } from './seeded-random.ts';

export interface Hazards {
  /** Of each step that an environment takes: that it dies instead. */
  crash: number;
  /** Of each step: that the environment stands still before it, for up to `freezeMs`. */
  freeze: number;
  freezeMs: number;
}

/** A process with a clock of its own, which may die or stand still at every wait, and wake when nobody expects it. */
export class Environment implements Clock {
  readonly #scheduler: Scheduler;
  readonly #random: SeededRandom;
  readonly #hazards: Hazards;
  readonly #skewMs: number;
  #frozenUntilMs = 0;
  /** Dead: nothing that it waits for comes back. */
  crashed = false;
  /** It stood still in the work that it is on, so it may be later than any deadline. */
  stoodStill = false;
  /** A try of a reserve may still arrive: no second misfortune for this call, see `networked-store.ts`. */
  spared = false;
  /** Called when it dies. */
  died: () => void = () => {};

  constructor(scheduler: Scheduler, random: SeededRandom, hazards: Hazards, skewMs: number) {
    this.#scheduler = scheduler;
    this.#random = random;
    this.#hazards = hazards;
    this.#skewMs = skewMs;
  }

  now(): number {
    return this.#scheduler.nowMs + this.#skewMs;
  }

  sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      signal?.addEventListener('abort', () => resolve());
      // A timer that was stopped wakes nobody.
      this.after(milliseconds, resolve, signal);
    });
  }

  /** Something that reaches this environment, if it still lives by then and once it is awake. */
  after(delayMs: number, happen: () => void, signal?: AbortSignal): void {
    this.#scheduler.after(delayMs, () => {
      if (this.crashed || signal?.aborted) return;
      const { crash, freeze, freezeMs } = this.#hazards;
      if (!this.spared && this.#random.chance(crash)) {
        this.crashed = true;
        this.died();
        return;
      }
      if (!this.spared && this.#random.chance(freeze)) {
        this.#frozenUntilMs = this.#scheduler.nowMs + this.#random.integer(1_000, freezeMs);
        this.stoodStill = true;
      }
      const frozenMs = this.#frozenUntilMs - this.#scheduler.nowMs;
      if (frozenMs > 0) this.#scheduler.after(frozenMs, () => this.after(0, happen));
      else happen();
    });
  }
}
