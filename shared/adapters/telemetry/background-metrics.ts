import type { Metrics, SweepResult } from '../../relay/ports/telemetry.ts';
import { countsLine } from './embedded-metric.ts';

export interface BookMetrics extends Metrics {
  /** How a sweep ended: what is still open, and how many it closed. */
  swept(result: SweepResult): void;
}

/** Counts as CloudWatch metrics of namespace `relay`, by stack: each one a line on the function's log (EMF). */
export function embeddedMetrics(stack: string): BookMetrics {
  const publish = (counts: Record<string, number>): void => {
    process.stdout.write(countsLine(stack, counts));
  };
  return {
    count: (name) => publish({ [name]: 1 }),
    swept: ({ open, expired }) => publish({ OpenReservations: open, ExpiredReservations: expired }),
  };
}
