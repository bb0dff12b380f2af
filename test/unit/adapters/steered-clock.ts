import type { Clock } from '../../../shared/relay/ports/host.ts';

export interface SteeredClock extends Clock {
  /** Advances time and wakes all sleepers that are due. */
  advance(milliseconds: number): void;
  /** The number of sleepers. */
  sleeping(): number;
}

/** A clock whose time passes only when the test says so. */
export function steeredClock(start = 1_700_000_000_000): SteeredClock {
  let now = start;
  const sleepers = new Set<{ at: number; wake(): void }>();
  return {
    now: () => now,
    sleep: (milliseconds, signal) =>
      new Promise((resolve) => {
        const sleeper = {
          at: now + milliseconds,
          wake: () => {
            sleepers.delete(sleeper);
            resolve();
          },
        };
        sleepers.add(sleeper);
        signal?.addEventListener('abort', sleeper.wake);
      }),
    advance: (milliseconds) => {
      now += milliseconds;
      for (const sleeper of sleepers) if (sleeper.at <= now) sleeper.wake();
    },
    sleeping: () => sleepers.size,
  };
}

/** Advances time whenever somebody sleeps, until the work is done. */
export async function passTime<Result>(clock: SteeredClock, work: Promise<Result>): Promise<Result> {
  const ending = new AbortController();
  const done = work.finally(() => ending.abort());
  done.catch(() => {});
  while (!ending.signal.aborted) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    if (clock.sleeping() > 0) clock.advance(10);
  }
  return done;
}
