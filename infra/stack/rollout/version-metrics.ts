/**
 * What a version of a function did, apart from the version beside it: calls and failures by the relay's log lines, and Lambda's own errors, for a version that dies before it writes a line.
 */
import { Duration } from 'aws-cdk-lib';
import { Metric, Stats } from 'aws-cdk-lib/aws-cloudwatch';
import type { Alias } from 'aws-cdk-lib/aws-lambda';
import { FilterPattern } from 'aws-cdk-lib/aws-logs';
import { functionDescriptions, type FunctionName } from '../constructs/function-descriptions.ts';
import type { RelayFunctions } from '../constructs/relay-functions.ts';

/** Of all metrics of relays; functions write theirs by the same in `shared/adapters/telemetry`. */
export const relayNamespace = 'relay';
const period = Duration.minutes(5);

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
  for (const [name, relayFunction] of functions.byName) {
    if (functionDescriptions[name].answersCalls !== true) continue;
    const { logGroup } = relayFunction.lambda;
    for (const [metricName, pattern] of Object.entries(patterns))
      logGroup.addMetricFilter(metricName, {
        filterPattern: FilterPattern.literal(pattern),
        metricNamespace: relayNamespace,
        metricName,
        metricValue: '1',
        dimensions: { stack: '$.stack', build: '$.build' },
      });
  }
}

export interface VersionOf {
  relayName: string;
  name: FunctionName;
  live: Alias;
}

export interface VersionMetrics {
  /** Runs that ended in an error, as Lambda counts them. */
  errors: Metric;
  /** Absent: the function does not answer calls. */
  calls?: Metric;
  failures?: Metric;
}

/** Of the newest version, while it shares the alias with the one before. */
export function versionMetrics({ relayName, name, live }: VersionOf): VersionMetrics {
  const { version } = live.version;
  const common = { period, statistic: Stats.SUM };
  const errors = live.lambda.metric('Errors', {
    ...common,
    dimensionsMap: {
      FunctionName: live.lambda.functionName,
      Resource: `${live.lambda.functionName}:${live.aliasName}`,
      ExecutedVersion: version,
    },
  });
  if (functionDescriptions[name].answersCalls !== true) return { errors };
  const ofLines = (metricName: string): Metric =>
    new Metric({
      namespace: relayNamespace,
      metricName,
      dimensionsMap: { stack: relayName, build: `${name}:${version}` },
      ...common,
    });
  return { errors, calls: ofLines('VersionCalls'), failures: ofLines('VersionFailures') };
}
