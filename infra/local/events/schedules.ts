import type { Log } from '../host/log.ts';
import type { LocalFunction } from '../lambda/local-function.ts';

export interface Schedule {
  id: string;
  expression: string;
  event: unknown;
  target: LocalFunction;
}

const unitMs: Record<string, number> = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };

/** Milliseconds of `rate(5 minutes)`; undefined for other expressions, which only run when asked for. */
export function rateMs(expression: string): number | undefined {
  const match = /^rate\((\d+) (minute|hour|day)s?\)$/.exec(expression);
  return match === null ? undefined : Number(match[1]) * (unitMs[match[2] ?? ''] ?? 0);
}

/** Runs functions at their rates, and all of them at once when asked to. */
export class Schedules {
  readonly #schedules: Schedule[];
  readonly #log: Log;
  #timers: NodeJS.Timeout[] = [];

  constructor(schedules: Schedule[], log: Log) {
    this.#schedules = schedules;
    this.#log = log;
  }

  start(): void {
    for (const schedule of this.#schedules) {
      const every = rateMs(schedule.expression);
      if (every === undefined)
        this.#log(`schedule ${schedule.id} (${schedule.expression}) runs on SIGUSR2 only: it is not a rate`);
      else this.#timers.push(setInterval(() => void this.#run(schedule), every));
    }
  }

  /** Resolves when every run has ended, however it ended. */
  async runAll(): Promise<void> {
    await Promise.all(this.#schedules.map((schedule) => this.#run(schedule)));
  }

  stop(): void {
    for (const timer of this.#timers.splice(0)) clearInterval(timer);
  }

  async #run(schedule: Schedule): Promise<void> {
    try {
      await schedule.target.call(schedule.event);
      this.#log(`schedule ${schedule.id} ran ${schedule.target.settings.name}`);
    } catch (error) {
      this.#log(`schedule ${schedule.id} failed: ${(error as Error).message}`);
    }
  }
}
