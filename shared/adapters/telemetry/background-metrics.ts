/**
 * Writes counts of the background jobs as CloudWatch metrics, by stack: one log line (EMF) for each count.
 */
import type { Metrics, SweepMetrics } from '../../relay/ports/telemetry.ts';
import { writeCounts } from './embedded-metric.ts';

export function backgroundMetrics(stack: string): Metrics & SweepMetrics {
  const publish = (counts: Record<string, number>): void => writeCounts(stack, counts);
  return {
    count: (name) => publish({ [name]: 1 }),
    swept: ({ open, expired }) => publish({ OpenReservations: open, ExpiredReservations: expired }),
  };
}
