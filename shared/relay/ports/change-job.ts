/** A job that a host hands the changes of a table to, one by one, in any order, and the same one more than once. */
import type { Log, MetricName, Metrics } from './telemetry.ts';

export interface ChangeJob<Change> {
  /** Safe to repeat. Throws Poisoned for a change that can never be taken; after any other error it must come again. */
  take(change: Change): Promise<void>;
  /** The log event and the metric of a change that can never be taken. */
  poisoned: { event: string; metric: MetricName };
  log: Log;
  metrics: Metrics;
}
