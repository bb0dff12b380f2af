/** The metrics of alarms and dashboard: the relay's own, which `shared/adapters/telemetry` writes to the log, and those of tables. */
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
 * Draws one line per channel. Channels are table rows that the template can't list, so CloudWatch searches for them. Alarms
 * can't use a search.
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

/** Counts the requests of all channels with this outcome. */
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

// Metrics of a single version of a function: calls and failures from the relay's log lines, and Lambda's errors for a
// version that crashes before it writes a line.

/**
 * Counts lines of a function that answers calls. Refused calls don't count, because a hostile caller could hide a bad version among
 * them. A call with a complete answer and a lost charge counts as failed.
 */
const patterns = {
  VersionCalls: '{ ($.message = "request") && ($.outcome != "refused") }',
  VersionFailures: '{ ($.outcome = "failed") || ($.message = "settle_lost") }',
};

/** Derives metrics from lines that exist anyway. Metrics inside the lines would cost money with each call. */
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

/** Counts rejected payment events from the log lines, where no Function URL counts them. */
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

/** Lambda's count of failed runs of the newest version, while it shares the alias with the previous one. */
export function createVersionErrors({ live }: ShiftedFunction): Metric {
  const { functionName } = live.lambda;
  const dimensionsMap = {
    FunctionName: functionName,
    Resource: `${functionName}:${live.aliasName}`,
    ExecutedVersion: live.version.version,
  };
  return live.lambda.metric('Errors', { period, statistic: Stats.SUM, dimensionsMap });
}

/** Reads log lines of the newest version of an answering function. */
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
