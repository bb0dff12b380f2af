/** The time-outs of one attempt. Never decides what a time-out means: it aborts a signal and says which limit it was. */
import type { Clock } from '../ports/clock.ts';

export interface WatchdogLimits {
  firstContentMs: number;
  idleMs: number;
  totalMs: number;
  /** How long after the last finish reason the upstream may take to tell the usage. */
  graceMs: number;
}

/**
 * The time-outs of one attempt, with one timer however many reads there are. Its signal aborts when a limit
 * passes or the request's own signal aborts; `reason` then says which.
 */
export class Watchdog {
  readonly #clock: Clock;
  readonly #limits: WatchdogLimits;
  readonly #abort = new AbortController();
  readonly #startMs: number;
  #rearm = new AbortController();
  #lastReadMs: number;
  #open = false;
  #reading = true;
  #finishedMs: number | undefined;
  #stopped = false;
  reason: 'timeout' | 'deadline' | 'grace' | undefined;

  constructor(clock: Clock, limits: WatchdogLimits, request: AbortSignal) {
    this.#clock = clock;
    this.#limits = limits;
    this.#startMs = clock.now();
    this.#lastReadMs = this.#startMs;
    if (request.aborted) this.#fire('deadline');
    else request.addEventListener('abort', () => this.#fire('deadline'), { once: true });
    void this.#watch();
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** The upstream sent something, or is asked for more. */
  read(): void {
    this.#reading = true;
    this.#lastReadMs = this.#clock.now();
  }

  /** The bytes that were read wait for a slow client: until `read` is called again, silence is not the upstream's. */
  handedOn(): void {
    this.#reading = false;
  }

  /** Content came: from the first on silence counts, and after a finish reason the wait for usage starts anew. */
  content(): void {
    if (this.#open && this.#finishedMs === undefined) return;
    if (this.#finishedMs !== undefined) this.#finishedMs = this.#clock.now();
    this.#open = true;
    this.#rearm.abort();
  }

  /** Every choice has its finish reason: only usage is still to come. */
  finished(): void {
    if (this.#finishedMs !== undefined) return;
    this.#finishedMs = this.#clock.now();
    this.#rearm.abort();
  }

  stop(): void {
    this.#stopped = true;
    this.#rearm.abort();
  }

  async #watch(): Promise<void> {
    while (!this.#stopped && !this.#abort.signal.aborted) {
      const due = this.#due();
      const waitMs = due.atMs - this.#clock.now();
      if (waitMs <= 0) return this.#fire(due.reason);
      this.#rearm = new AbortController();
      await this.#clock.sleep(waitMs, this.#rearm.signal);
    }
  }

  #due(): { atMs: number; reason: 'timeout' | 'grace' } {
    const { firstContentMs, idleMs, totalMs, graceMs } = this.#limits;
    if (this.#finishedMs !== undefined) return { atMs: this.#finishedMs + graceMs, reason: 'grace' };
    const silentSinceMs = this.#reading ? this.#lastReadMs : this.#clock.now();
    const silenceAtMs = this.#open ? silentSinceMs + idleMs : this.#startMs + firstContentMs;
    return { atMs: Math.min(silenceAtMs, this.#startMs + totalMs), reason: 'timeout' };
  }

  #fire(reason: 'timeout' | 'deadline' | 'grace'): void {
    if (this.#stopped || this.#abort.signal.aborted) return;
    this.reason = reason;
    this.#abort.abort();
    this.#rearm.abort();
  }
}
