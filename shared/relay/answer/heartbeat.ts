/** Sends heartbeats while an upstream is silent, so that no proxy closes the connection. */
import type { ResponseQueue } from './response-queue.ts';
import type { Clock } from '../ports/clock.ts';
import { idleMs, type Renderer } from '../../endpoints/renderer.ts';

/**
 * Commits a silent answer with a heartbeat after the renderer's `commitAfterMs`, then sends one after each
 * `idleMs` of silence. Runs until `stop` aborts.
 */
export class Heartbeat {
  readonly #clock: Clock;
  #lastWriteMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#lastWriteMs = clock.now();
  }

  /** Restarts the measurement of silence, because text was written. */
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
        // At most `idleMs`: once text commits the answer during the sleep, the next heartbeat is due after
        // `idleMs`.
        await this.#clock.sleep(Math.min(waitMs, idleMs), stop);
      }
    }
  }
}
