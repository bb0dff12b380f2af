import { Metrics as EmbeddedMetrics } from '@aws-lambda-powertools/metrics';
import type { Metrics } from '../relay/ledger-keeper-ports.ts';

/** Counts as CloudWatch metrics of namespace `relay`, by stack: each one a line on the function's log (EMF). */
export function embeddedMetrics(stack: string): Metrics {
  const metrics = new EmbeddedMetrics({ namespace: 'relay', serviceName: stack });
  return { count: (name) => void metrics.addMetric(name, 'Count', 1).publishStoredMetrics() };
}
