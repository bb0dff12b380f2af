/**
 * CloudWatch's embedded metric format (EMF): a log line whose member `_aws` lists which other members are
 * metrics.
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
 */

export type MetricUnit = 'Count' | 'Milliseconds' | 'None';

/** Metrics of a line that have the same dimensions. */
export interface MetricGroup {
  /**
   * Sets of names of the line's members that hold dimension values. Each metric is counted once for each set,
   * and AWS bills each combination of values as a metric.
   */
  dimensions: readonly (readonly string[])[];
  /** Names of the line's members that hold the numbers. */
  metrics: Record<string, MetricUnit>;
}

const namespace = 'relay';

/** The member `_aws` of a line written at `atMs` (epoch milliseconds). */
export function embedded(atMs: number, groups: readonly MetricGroup[]): object {
  return {
    Timestamp: atMs,
    CloudWatchMetrics: groups.map(({ dimensions, metrics }) => ({
      Namespace: namespace,
      Dimensions: dimensions,
      // No unit means `None`.
      Metrics: Object.entries(metrics).map(([Name, Unit]) => (Unit === 'None' ? { Name } : { Name, Unit })),
    })),
  };
}

/**
 * Writes a line that holds only counts of the stack, for functions that serve no requests; none when all are zero. AWS
 * bills a metric for each hour in which it has a value, so a stack at rest has no metrics.
 */
export function writeCounts(stack: string, all: Record<string, number>): void {
  const counts = Object.entries(all).filter(([, count]) => count > 0);
  if (counts.length === 0) return;
  const units = Object.fromEntries(counts.map(([name]) => [name, 'Count' as const]));
  const _aws = embedded(Date.now(), [{ dimensions: [['stack']], metrics: units }]);
  process.stdout.write(`${JSON.stringify({ stack, ...Object.fromEntries(counts), _aws })}\n`);
}
