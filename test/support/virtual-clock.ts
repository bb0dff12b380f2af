import type { Clock } from '../../shared/relay/ports/host.ts';

interface Timer {
  atMs: number;
  wake: () => void;
}

/** Time that passes only when everything waits for it: `run` jumps from timer to timer until the work is done. */
export class VirtualClock implements Clock {
  #nowMs: number;
  #timers: Timer[] = [];

  constructor(nowMs = Date.UTC(2026, 10, 21)) {
    this.#nowMs = nowMs;
  }

  now(): number {
    return this.#nowMs;
  }

  sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = { atMs: this.#nowMs + milliseconds, wake: resolve };
      this.#timers.push(timer);
      signal?.addEventListener('abort', () => {
        this.#timers = this.#timers.filter((other) => other !== timer);
        resolve();
      });
    });
  }

  /** Waiting timers: those left after a request are leaks. */
  get pendingTimers(): number {
    return this.#timers.length;
  }

  async run<T>(work: Promise<T>): Promise<T> {
    let settled = false;
    const watched = work.finally(() => {
      settled = true;
    });
    watched.catch(() => {}); // Rejections reach the caller through `work`.
    for (;;) {
      await new Promise(setImmediate);
      if (settled) return work;
      const next = this.#timers.toSorted((a, b) => a.atMs - b.atMs)[0];
      if (!next) continue;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.wake();
    }
  }
}
