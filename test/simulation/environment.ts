import type { Clock } from '../../shared/relay/ports/host.ts';
import type { Scheduler } from './scheduler.ts';
import type { SeededRandom } from './seeded-random.ts';

export interface Hazards {
  /** The chance at each step that the environment dies. */
  crash: number;
  /** The chance at each step that the environment freezes before it, for up to `freezeMs`. */
  freeze: number;
  freezeMs: number;
}

/** A process with its own clock, which may die or freeze at every wait, and wake up at any time. */
export class Environment implements Clock {
  readonly #scheduler: Scheduler;
  readonly #random: SeededRandom;
  readonly #hazards: Hazards;
  readonly #skewMs: number;
  #frozenUntilMs = 0;
  /** Once dead, it receives nothing that it waits for. */
  crashed = false;
  /** True if it froze during its current work, so it may be later than any deadline. */
  stoodStill = false;
  /** True if a late reserve may still arrive: the call meets no second fault, see `networked-store.ts`. */
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
      // A cancelled timer wakes nobody.
      this.after(milliseconds, resolve, signal);
    });
  }

  /** Delivers an event to this environment, if it is still alive by then and once it is awake. */
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
