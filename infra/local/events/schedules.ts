import type { Log } from '../host/log.ts';
import type { LocalFunction } from '../lambda/local-function.ts';

export interface Schedule {
  id: string;
  expression: string;
  event: unknown;
  target: LocalFunction;
}

export interface RunningSchedules {
  /** Runs all schedules at once. Resolves when every run has ended, successfully or not. */
  runAll(): Promise<void>;
  stop(): void;
}

const unitMs: Record<string, number> = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };

/** Milliseconds of `rate(5 minutes)`. Undefined for other expressions, which run only in `runAll`. */
export function rateMs(expression: string): number | undefined {
  const match = /^rate\((\d+) (minute|hour|day)s?\)$/.exec(expression);
  return match === null ? undefined : Number(match[1]) * (unitMs[match[2] ?? ''] ?? 0);
}

/** Runs each function at the rate of its schedule. */
export function startSchedules(schedules: Schedule[], log: Log): RunningSchedules {
  const timers: NodeJS.Timeout[] = [];
  const run = ({ id, target, event }: Schedule): Promise<void> =>
    target.call(event).then(
      () => log(`schedule ${id} ran ${target.settings.name}`),
      (error: unknown) => log(`schedule ${id} failed: ${(error as Error).message}`),
    );
  for (const schedule of schedules) {
    const every = rateMs(schedule.expression);
    if (every === undefined)
      log(`schedule ${schedule.id} (${schedule.expression}) runs on SIGUSR2 only: it is not a rate`);
    else timers.push(setInterval(() => void run(schedule), every));
  }
  return {
    runAll: async () => void (await Promise.all(schedules.map(run))),
    stop: () => timers.forEach(clearInterval),
  };
}
