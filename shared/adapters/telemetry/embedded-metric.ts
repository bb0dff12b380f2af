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
 * The metrics of the alarms MoneyWrong, NeedsAPerson and Oddities, and what one of each count adds to them. An alarm on many
 * metrics costs as much as many alarms.
 */
const attention: Record<string, { alarm: string; weight: number }> = {
  ...of('MoneyWrong', 'ConservationBroken SettleLost LedgerPoisoned GrantPoisoned ReservationPoisoned'),
  ...of(
    'NeedsAPerson',
    'InternalErrors ReserveUnknown ChargedAboveReserve SweepFailed ExpiredReservations AlertUndelivered PaymentParked ConfigCompileFailed',
  ),
  // Its alarm triggers at ten: a throttled write harms one turn, an estimate may be wrong about a single odd text.
  ...of('Oddities', 'TurnStateLost ImplausibleUsage ResponsesNotStored'),
  ...of('Oddities', 'ConfigFormatUnknown', 10),
};

function of(alarm: string, names: string, weight = 1): typeof attention {
  return Object.fromEntries(names.split(' ').map((name) => [name, { alarm, weight }]));
}

/** The counts, and what their alarms count. */
export function withAttention(counts: Record<string, number>): Record<string, number> {
  const all = { ...counts };
  for (const [name, count] of Object.entries(counts)) {
    const asked = count === 0 ? undefined : attention[name];
    if (asked) all[asked.alarm] = (all[asked.alarm] ?? 0) + asked.weight;
  }
  return all;
}

/** A line that holds only counts of the stack, for functions that serve no requests. */
export function countsLine(stack: string, counted: Record<string, number>): string {
  const counts = withAttention(counted);
  const units = Object.fromEntries(Object.keys(counts).map((name) => [name, 'Count' as const]));
  const _aws = embedded(Date.now(), [{ dimensions: [['stack']], metrics: units }]);
  return `${JSON.stringify({ stack, ...counts, _aws })}\n`;
}
