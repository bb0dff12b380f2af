/**
 * The time-outs of one attempt, and the timer that holds it to them. Source of the figures: gateways' measurements of thinking models.
 */
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import { UpstreamFailure } from '../../upstreams/exchange.ts';
import type { ChatCall } from '../call/call.ts';
import type { Clock } from '../ports/host.ts';

/** Models that think answer 200 at once and write after 94 s in one of a hundred calls. */
const firstContentMs = 120_000;
/** Long prompts take time to read: 1 s for each 1,000 tokens of about 4 bytes, at most as long again. */
const perByteMs = 0.25;
const readingMaxMs = 120_000;
const longEfforts = new Set(['high', 'xhigh', 'max']);
/** How long a finished answer waits for the upstream to report its usage. */
const graceMs = 2_000;
/** Longer than a host lets a run live: it ends by its own time, with what it has by then. */
const runMs = 20 * 60 * 1000;

interface TimeLimits {
  firstContentMs: number;
  idleMs: number;
  totalMs: number;
}

/** `bodyLength`: of the request, in UTF-16 code units. A time-out that the row sets is taken as it is. */
export function timeLimits(channel: ChannelRow, call: ChatCall, bodyLength: number): TimeLimits {
  const { idle_seconds: idle, total_seconds: total, first_content_seconds: own, params } = channel;
  const totalMs = call.isRun ? Math.max(runMs, total * 1000) : total * 1000;
  const thinkingMs = firstContentMs * (longEfforts.has(call.request.reasoning_effort ?? '') ? 2 : 1);
  // An answer that is not streamed sends no byte until it is whole, so it has the time of the whole answer.
  const isStreamed = params.stream && call.compacts !== 'path';
  const usualMs = isStreamed ? thinkingMs + Math.min(bodyLength * perByteMs, readingMaxMs) : totalMs;
  return { firstContentMs: own === undefined ? usualMs : own * 1000, idleMs: idle * 1000, totalMs };
}

export type Watchdog = ReturnType<typeof startWatchdog>;

/**
 * Uses one timer for all reads. Only aborts its signal, when a limit is exceeded or the request's own signal aborts, and
 * says which; must not decide what that means.
 */
export function startWatchdog(clock: Clock, limits: TimeLimits, request: AbortSignal) {
  const abort = new AbortController();
  const startMs = clock.now();
  let rearm = new AbortController();
  let lastReadMs = startMs;
  let isOpen = false;
  let isReading = true;
  let finishedMs: number | undefined;
  let isStopped = false;
  let isDeadline = false;

  const rearmTimer = (): void => rearm.abort('again');
  function abortAnswer(byDeadline: boolean): void {
    if (isStopped || abort.signal.aborted) return;
    isDeadline = byDeadline;
    abort.abort();
    rearmTimer();
  }
  function dueMs(): number {
    if (finishedMs !== undefined) return finishedMs + graceMs;
    const silentSinceMs = isReading ? lastReadMs : clock.now();
    // Before the first content any byte is a sign of life: models think for minutes between comments.
    const silentMsMax = isOpen ? limits.idleMs : limits.firstContentMs;
    return Math.min(silentSinceMs + silentMsMax, startMs + limits.totalMs);
  }
  async function watch(): Promise<void> {
    for (;;) {
      if (isStopped || abort.signal.aborted) return;
      const waitMs = dueMs() - clock.now();
      if (waitMs <= 0) return abortAnswer(false);
      rearm = new AbortController();
      await clock.sleep(waitMs, rearm.signal);
    }
  }
  if (request.aborted) abortAnswer(true);
  else request.addEventListener('abort', () => abortAnswer(true), { once: true });
  void watch();

  return {
    signal: abort.signal,
    failure(): UpstreamFailure | undefined {
      if (!abort.signal.aborted) return undefined;
      const late = isOpen ? 'timeout' : 'first_content_timeout';
      return new UpstreamFailure(isDeadline ? 'deadline' : late);
    },
    /** The upstream has sent bytes, or the next read starts. */
    read(): void {
      isReading = true;
      lastReadMs = clock.now();
    },
    /** A slow client processes the bytes: until the next `read`, silence is not counted against the upstream. */
    noteHandOver(): void {
      isReading = false;
    },
    /** The first content starts the idle limit; content after a finish reason restarts the wait for usage. */
    content(): void {
      if (isOpen && finishedMs === undefined) return;
      if (finishedMs !== undefined) finishedMs = clock.now();
      isOpen = true;
      rearmTimer();
    },
    /** Every choice has its finish reason; only usage is then expected. */
    finished(): void {
      if (finishedMs !== undefined) return;
      finishedMs = clock.now();
      rearmTimer();
    },
    stop(): void {
      isStopped = true;
      rearmTimer();
    },
  };
}
