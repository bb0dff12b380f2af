/** Writes counts of the configuration's publisher as CloudWatch metrics, by stack, as log lines (EMF). */
import type { ConfigMetrics } from '../../relay/ports/telemetry.ts';
import { writeCounts } from './embedded-metric.ts';

export function configMetrics(stack: string): ConfigMetrics {
  const publish = (counts: Record<string, number>): void => writeCounts(stack, counts);
  return {
    compiled: ({ badRows, warnedRows, unpricedModels }) =>
      publish({ BadRows: badRows, WarnedRows: warnedRows, UnpricedModels: unpricedModels }),
    badRows: (BadRows) => publish({ BadRows }),
    failed: () => publish({ ConfigCompileFailed: 1 }),
  };
}
