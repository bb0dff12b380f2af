import type { SeededRandom } from './seeded-random.ts';

interface Event {
  atMs: number;
  happen: () => void;
}

/**
 * The single order of events. Everything that waits, for a reply, a timer or a turn, is an event; any of the due events
 * may be next. So anything else can happen at each `await`.
 */
export class Scheduler {
  readonly #random: SeededRandom;
  readonly #events: Event[] = [];
  #nowMs: number;
  steps = 0;

  constructor(random: SeededRandom, startMs: number) {
    this.#random = random;
    this.#nowMs = startMs;
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, happen: () => void): void {
    this.#events.push({ atMs: this.#nowMs + delayMs, happen });
  }

  /** Runs until nothing waits any more. Throws the error of an event. */
  async run(): Promise<void> {
    for (;;) {
      // Lets all woken work run to its next wait.
      await new Promise(setImmediate);
      const event = this.#next();
      if (!event) return;
      this.#nowMs = Math.max(this.#nowMs, event.atMs);
      this.steps += 1;
      event.happen();
    }
  }

  #next(): Event | undefined {
    let earliestMs = Infinity;
    for (const { atMs } of this.#events) if (atMs < earliestMs) earliestMs = atMs;
    const dueMs = Math.max(earliestMs, this.#nowMs);
    const due: number[] = [];
    let index = 0;
    for (const { atMs } of this.#events) {
      if (atMs <= dueMs) due.push(index);
      index += 1;
    }
    const chosen = due[this.#random.integer(0, due.length - 1)];
    return chosen === undefined ? undefined : this.#events.splice(chosen, 1)[0];
  }
}
