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

/** Counts that the alarms MoneyWrong, NeedsAPerson and Oddities look at, added to each count of such an event. */
const attention: Record<string, string> = {
  ...of('MoneyWrong', 'ConservationBroken SettleLost LedgerPoisoned GrantPoisoned ReservationPoisoned'),
  ...of(
    'NeedsAPerson',
    'InternalErrors ReserveUnknown ChargedAboveReserve SweepFailed AlertUndelivered PaymentParked ConfigCompileFailed',
  ),
  // The next turn of its conversation has nothing to go on from.
  ...of('TurnStateLost', 'ResponsesNotStored'),
};

function of(alarm: string, names: string): Record<string, string> {
  return Object.fromEntries(names.split(' ').map((name) => [name, alarm]));
}

/** The counts, and what their alarms count. */
export function withAttention(counts: Record<string, number>): Record<string, number> {
  const asked = Object.keys(counts).flatMap((name) => (counts[name] ? (attention[name] ?? []) : []));
  return { ...counts, ...Object.fromEntries(asked.map((alarm) => [alarm, 1])) };
}

/** A line that holds only counts of the stack, for functions that serve no requests. */
export function countsLine(stack: string, counted: Record<string, number>): string {
  const counts = withAttention(counted);
  const units = Object.fromEntries(Object.keys(counts).map((name) => [name, 'Count' as const]));
  const _aws = embedded(Date.now(), [{ dimensions: [['stack']], metrics: units }]);
  return `${JSON.stringify({ stack, ...counts, _aws })}\n`;
}
