/** The metrics that alarms and the dashboard look at: the relay's own, which functions write to their log in `shared/adapters/telemetry`, and those of tables. */
import { Duration } from 'aws-cdk-lib';
import { Metric, Stats, MathExpression, SearchExpression, type IMetric } from 'aws-cdk-lib/aws-cloudwatch';
import type { Alias } from 'aws-cdk-lib/aws-lambda';
import { FilterPattern, type ILogGroup, MetricFilter } from 'aws-cdk-lib/aws-logs';
import { physicalNameOf, type TableName } from '../../../shared/tables/table-names.ts';
import { answersCalls, type FunctionName } from '../constructs/function-descriptions.ts';
import type { RelayFunctions } from '../constructs/relay-functions.ts';

/** Namespace of all relay metrics, the same as in `shared/adapters/telemetry`. */
const relayNamespace = 'relay';
const period = Duration.minutes(5);

/** A metric of the whole stack. The statistic has CloudWatch's name: `Sum`, `p95`. */
export const createRelayMetric = (relayName: string, metricName: string, statistic: string): Metric =>
  new Metric({
    namespace: relayNamespace,
    metricName,
    dimensionsMap: { stack: relayName },
    statistic,
    period,
  });

/**
 * One line per channel. Channels are table rows, so the template cannot list them and CloudWatch searches for
 * them. Alarms cannot use a search.
 */
export function searchEachChannel(
  relayName: string,
  metricName: string,
  statistic: string,
): SearchExpression {
  const search = `{relay,stack,channel} MetricName="${metricName}" stack="${relayName}"`;
  return new SearchExpression({
    expression: `SEARCH('${search}', '${statistic}')`,
    label: '',
    period: Duration.minutes(1),
  });
}

/** Number of requests of all channels with this outcome. */
export function searchRequests(relayName: string, outcome: string): MathExpression {
  const search = `{relay,stack,channel,outcome} MetricName="Requests" stack="${relayName}" outcome="${outcome}"`;
  return new MathExpression({
    expression: `SUM(SEARCH('${search}', 'Sum'))`,
    usingMetrics: {},
    label: outcome,
    period: Duration.minutes(1),
  });
}

export const createThrottleMetric = (relayName: string, name: TableName, metricName: string): Metric =>
  new Metric({
    namespace: 'AWS/DynamoDB',
    metricName,
    dimensionsMap: { TableName: physicalNameOf(relayName, name) },
    statistic: Stats.SUM,
    period,
  });

/** Throttled reads and writes of a table. */
export const sumTableThrottles = (relayName: string, name: TableName): IMetric =>
  new MathExpression({
    expression: `FILL(${name}Reads, 0) + FILL(${name}Writes, 0)`,
    // Names must be unique in a graph of several tables.
    usingMetrics: {
      [`${name}Reads`]: createThrottleMetric(relayName, name, 'ReadThrottleEvents'),
      [`${name}Writes`]: createThrottleMetric(relayName, name, 'WriteThrottleEvents'),
    },
    label: name,
    period,
  });

// Metrics of one version of a function, apart from the version beside it: calls and failures from the
// relay's log lines, and Lambda's own errors, for a version that dies before it writes a line.

/**
 * Lines of a function that answers calls. Refused calls do not count, or a hostile caller could hide a bad version among
 * them. A call whose answer was whole and whose charge was lost has failed.
 */
const patterns = {
  VersionCalls: '{ ($.message = "request") && ($.outcome != "refused") }',
  VersionFailures: '{ ($.outcome = "failed") || ($.message = "settle_lost") }',
};

/** Makes metrics of the lines that are written anyway: metrics in the lines themselves would be paid with each call. */
export function countCallsByVersion(functions: RelayFunctions): void {
  for (const [name, { lambda }] of functions.byName) {
    if (!answersCalls(name)) continue;
    for (const [metricName, pattern] of Object.entries(patterns))
      lambda.logGroup.addMetricFilter(metricName, {
        filterPattern: FilterPattern.literal(pattern),
        metricNamespace: relayNamespace,
        metricName,
        metricValue: '1',
        dimensions: { stack: '$.stack', build: '$.build' },
      });
  }
}

/** Reports of payments that were not taken, counted from lines where no URL counts them. */
export function countFailedPayments(relayName: string, log: ILogGroup): Metric {
  const metricName = 'PaymentsFailed';
  void new MetricFilter(log, metricName, {
    logGroup: log,
    filterPattern: FilterPattern.literal('{ ($.endpoint = "payments") && ($.status >= 500) }'),
    metricNamespace: relayNamespace,
    metricName,
    metricValue: '1',
    dimensions: { stack: '$.stack' },
  });
  return createRelayMetric(relayName, metricName, Stats.SUM);
}

interface ShiftedFunction {
  relayName: string;
  name: FunctionName;
  live: Alias;
}

/** Runs of the newest version that ended in an error, while it shares the alias with the one before, as Lambda counts them. */
export function createVersionErrors({ live }: ShiftedFunction): Metric {
  const { functionName } = live.lambda;
  const dimensionsMap = {
    FunctionName: functionName,
    Resource: `${functionName}:${live.aliasName}`,
    ExecutedVersion: live.version.version,
  };
  return live.lambda.metric('Errors', { period, statistic: Stats.SUM, dimensionsMap });
}

/** From the log lines of an answering function's newest version. */
export const createVersionLines = (
  metricName: keyof typeof patterns,
  { relayName, name, live }: ShiftedFunction,
): Metric =>
  new Metric({
    namespace: relayNamespace,
    metricName,
    dimensionsMap: { stack: relayName, build: `${name}:${live.version.version}` },
    period,
    statistic: Stats.SUM,
  });
