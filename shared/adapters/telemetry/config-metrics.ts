/** Writes counts of the configuration's publisher as CloudWatch metrics, by stack, as log lines (EMF). */
import type { ConfigMetrics } from '../../relay/ports/telemetry.ts';
import { countsLine } from './embedded-metric.ts';

export function configMetrics(stack: string): ConfigMetrics {
  const publish = (counts: Record<string, number>): void => {
    process.stdout.write(countsLine(stack, counts));
  };
  return {
    // `BadRows` ends its alarm with 0, and has the models without a price in it: an alarm of their own would be one more
    // metric to pay for. What is otherwise 0 is not written: see request-metrics.
    compiled: ({ badRows, warnedRows, unpricedModels }) =>
      publish({
        BadRows: badRows + unpricedModels,
        ...(warnedRows > 0 && { WarnedRows: warnedRows }),
        ...(unpricedModels > 0 && { UnpricedModels: unpricedModels }),
      }),
    badRows: (BadRows) => publish({ BadRows }),
    failed: () => publish({ ConfigCompileFailed: 1 }),
  };
}
