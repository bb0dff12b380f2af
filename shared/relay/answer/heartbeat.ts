import type { ResponseQueue } from './response-queue.ts';
import type { Clock } from '../ports/clock.ts';
import { idleMs, type Renderer } from '../../endpoints/renderer.ts';

/**
 * Keeps an answer alive while its upstream is silent: commits it with a sign of life when the renderer's time for
 * that has come, then repeats after each stretch of silence. Runs until `stop` aborts.
 */
export class Heartbeat {
  readonly #clock: Clock;
  #lastSaidMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#lastSaidMs = clock.now();
  }

  /** Something was said: silence starts anew. */
  said(): void {
    this.#lastSaidMs = this.#clock.now();
  }

  async run(responseQueue: ResponseQueue, renderer: Renderer, stop: AbortSignal): Promise<void> {
    const commitAtMs = this.#lastSaidMs + renderer.commitAfterMs;
    while (!stop.aborted) {
      const dueMs = responseQueue.committed ? this.#lastSaidMs + idleMs : commitAtMs;
      const waitMs = dueMs - this.#clock.now();
      if (waitMs <= 0) {
        responseQueue.push(renderer.idle());
        this.said();
      } else {
        // Never longer than one stretch: the answer may be committed meanwhile, and then silence counts.
        await this.#clock.sleep(Math.min(waitMs, idleMs), stop);
      }
    }
  }
}
