/**
 * The time-outs of one attempt. Only aborts a signal and names the exceeded limit; must not decide what a
 * time-out means.
 */
import { UpstreamFailure } from '../../upstreams/exchange.ts';
import type { Clock } from '../ports/host.ts';
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import { usualFirstContentSeconds } from '../../config/snapshot.ts';
import type { ChatCall } from '../call/call.ts';

interface WatchdogLimits {
  firstContentMs: number;
  idleMs: number;
  totalMs: number;
  /** How long the upstream may take to report the usage after the last finish reason. */
  graceMs: number;
}

/**
 * Uses one timer for all reads. `signal` aborts when a limit is exceeded or the request's own signal aborts;
 * `reason` names the cause.
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

  /** What an exceeded limit means. Undefined: none was, or only the wait for usage. */
  get failure(): UpstreamFailure | undefined {
    if (!this.#abort.signal.aborted) return undefined;
    if (this.reason === 'deadline') return new UpstreamFailure('deadline');
    return new UpstreamFailure(this.#open ? 'timeout' : 'first_content_timeout');
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** To be called when the upstream has sent bytes and when the next read starts. */
  read(): void {
    this.#reading = true;
    this.#lastReadMs = this.#clock.now();
  }

  /**
   * To be called while a slow client processes the bytes. Until the next `read`, silence is not counted
   * against the upstream.
   */
  handedOn(): void {
    this.#reading = false;
  }

  /**
   * To be called for content. The first content starts the idle limit; content after a finish reason restarts
   * the wait for usage.
   */
  content(): void {
    if (this.#open && this.#finishedMs === undefined) return;
    if (this.#finishedMs !== undefined) this.#finishedMs = this.#clock.now();
    this.#open = true;
    this.#rearm.abort('again');
  }

  /** To be called when every choice has its finish reason; only usage is then expected. */
  finished(): void {
    if (this.#finishedMs !== undefined) return;
    this.#finishedMs = this.#clock.now();
    this.#rearm.abort('again');
  }

  stop(): void {
    this.#stopped = true;
    this.#rearm.abort('again');
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
    // Before the first content any byte is a sign of life: models think for minutes between comments.
    const silenceAtMs = silentSinceMs + (this.#open ? idleMs : firstContentMs);
    return { atMs: Math.min(silenceAtMs, this.#startMs + totalMs), reason: 'timeout' };
  }

  #fire(reason: 'timeout' | 'deadline' | 'grace'): void {
    if (this.#stopped || this.#abort.signal.aborted) return;
    this.reason = reason;
    this.#abort.abort();
    this.#rearm.abort('again');
  }
}

// Decides how long an attempt may take. Source of the figures: gateways' measurements of thinking models.

/** Models that think answer 200 at once and write after 94 s in one of a hundred calls. */
const firstContentMs = 120_000;
/** Long prompts take time to read: 1 s for each 1,000 tokens of about 4 bytes, at most as long again. */
const perByteMs = 0.25;
const readingMaxMs = 120_000;
const longEfforts = new Set(['high', 'xhigh', 'max']);
/** How long a finished answer waits for the upstream to report its usage. */
const graceMs = 2_000;

/** `bodyLength`: of the request, in UTF-16 code units. A time-out that the row sets is taken as it is. */
export function timeLimits(channel: ChannelRow, call: ChatCall, bodyLength: number): WatchdogLimits {
  const { idle_seconds: idle } = channel;
  const totalMs = totalOf(channel, call);
  const ownSeconds = ownFirstContentSeconds(channel);
  return {
    firstContentMs: ownSeconds === undefined ? usualMs(channel, call, bodyLength) : ownSeconds * 1000,
    idleMs: idle * 1000,
    totalMs,
    graceMs,
  };
}

/** Longer than a host lets a run live: it ends by its own time, with what it has by then. */
const runMs = 20 * 60 * 1000;

const totalOf = ({ total_seconds: total }: ChannelRow, { isRun }: ChatCall): number =>
  isRun ? Math.max(runMs, total * 1000) : total * 1000;

/** An answer that is not streamed sends no byte until it is whole, so it has the time of the whole answer. */
function usualMs(channel: ChannelRow, call: ChatCall, bodyLength: number): number {
  if (!channel.params.stream) return totalOf(channel, call);
  const effort = call.request.reasoning_effort ?? '';
  const thinkingMs = firstContentMs * (longEfforts.has(effort) ? 2 : 1);
  return thinkingMs + Math.min(bodyLength * perByteMs, readingMaxMs);
}

/** Undefined: the row has none. A snapshot of the version before this one does not say whether a number is the row's. */
function ownFirstContentSeconds({
  first_content_seconds: seconds,
  own_first_content: own = false,
}: ChannelRow): number | undefined {
  return own || !usualFirstContentSeconds.includes(seconds ?? NaN) ? seconds : undefined;
}
