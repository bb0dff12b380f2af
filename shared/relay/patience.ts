import { StoreUnavailable, type Clock, type Random } from './ports.ts';
import { StoreBusy } from './quota-store.ts';

const firstPauseMs = 25;
const pauseMsMax = 400;

/**
 * Repeats a write that is safe to repeat until its outcome is known or the time is up. `sawUnknown`: a write's
 * outcome was unknown at least once, so it may have landed, or land later.
 */
export class Patience {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #untilMs: number;
  #pauseMs = firstPauseMs;
  sawUnknown = false;

  constructor({ clock, random }: { clock: Clock; random: Random }, budgetMs: number) {
    this.#clock = clock;
    this.#random = random;
    this.#untilMs = clock.now() + budgetMs;
  }

  async until<T>(write: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await write();
      } catch (error) {
        const unknown = error instanceof StoreUnavailable;
        if (!unknown && !(error instanceof StoreBusy)) throw error;
        if (unknown) this.sawUnknown = true;
        // Full jitter: callers that collided must not come back together.
        const pauseMs = Math.ceil(this.#pauseMs * this.#random.next());
        if (this.#clock.now() + pauseMs >= this.#untilMs)
          throw unknown ? error : new StoreUnavailable('busy');
        await this.#clock.sleep(pauseMs);
        this.#pauseMs = Math.min(pauseMsMax, this.#pauseMs * 2);
      }
    }
  }
}
