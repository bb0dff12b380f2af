/**
 * Writes counts of the background jobs as CloudWatch metrics, by stack: one log line (EMF) for each count.
 */
import type { Metrics, SweepMetrics } from '../../relay/ports/telemetry.ts';
import { countsLine } from './embedded-metric.ts';

export function backgroundMetrics(stack: string): Metrics & SweepMetrics {
  const publish = (counts: Record<string, number>): void => {
    process.stdout.write(countsLine(stack, counts));
  };
  return {
    count: (name) => publish({ [name]: 1 }),
    // `OpenReservations` says also that the sweeper ran. What is otherwise 0 is not written: see request-metrics.
    swept: ({ open, expired }) =>
      publish({ OpenReservations: open, ...(expired > 0 && { ExpiredReservations: expired }) }),
  };
}
