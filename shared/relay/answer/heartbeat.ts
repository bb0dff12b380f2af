/** Signs of life while an upstream is silent, so that no proxy cuts the connection. */
import type { ResponseQueue } from './response-queue.ts';
import type { Clock } from '../ports/clock.ts';
import { idleMs, type Renderer } from '../../endpoints/renderer.ts';

/**
 * Commits a silent answer with a sign of life at the renderer's time for that, then repeats one after each stretch of
 * silence. Runs until `stop` aborts.
 */
export class Heartbeat {
  readonly #clock: Clock;
  #lastWriteMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#lastWriteMs = clock.now();
  }

  /** Text was written: the silence starts again from here. */
  wrote(): void {
    this.#lastWriteMs = this.#clock.now();
  }

  async run(queue: ResponseQueue, renderer: Renderer, stop: AbortSignal): Promise<void> {
    const commitAtMs = this.#lastWriteMs + renderer.commitAfterMs;
    while (!stop.aborted) {
      const dueMs = queue.committed ? this.#lastWriteMs + idleMs : commitAtMs;
      const waitMs = dueMs - this.#clock.now();
      if (waitMs <= 0) {
        queue.push(renderer.idle());
        this.wrote();
      } else {
        // Never longer than one stretch: the answer may be committed meanwhile, and then silence counts.
        await this.#clock.sleep(Math.min(waitMs, idleMs), stop);
      }
    }
  }
}
