/**
 * Alarm definitions for functions and the streams that they read. AWS bills each metric that an alarm looks at, so a function
 * whose end is seen otherwise is left out: docs/observability.md says by which alarm.
 */
import { Duration } from 'aws-cdk-lib';
import { MathExpression, Metric, Stats, type IMetric } from 'aws-cdk-lib/aws-cloudwatch';
import type { FunctionName } from '../constructs/function-descriptions.ts';
import type { RelayFunctions } from '../constructs/relay-functions.ts';
import type { StreamMapping } from '../constructs/triggers.ts';
import type { AlarmDefinition } from './alarm-definition.ts';

const period = Duration.minutes(5);
const iteratorAgeMax = Duration.minutes(5);

/** Names must begin with a small letter, as those of functions do. */
export type ByName = Record<string, IMetric>;

/** A metric without any value is left out. */
export function sumOf(metrics: ByName): MathExpression {
  const filled = Object.keys(metrics).map((id) => `FILL(${id}, 0)`);
  return new MathExpression({
    expression: `SUM([${filled.join(', ')}])`,
    usingMetrics: metrics,
    label: 'sum',
    period,
  });
}

/** On schedules, so that a fault of any kind ends a run soon. */
const scheduled = ['grants', 'alerts', 'notify'] as const satisfies FunctionName[];

export function functionAlarms(functions: RelayFunctions): AlarmDefinition[] {
  const of = (metricName: string, name: FunctionName, statistic: string = Stats.SUM): Metric =>
    functions.get(name).lambda.metric(metricName, { period, statistic });
  const ofEach = (metricName: string, names: readonly FunctionName[]): ByName =>
    Object.fromEntries(names.map((name) => [name, of(metricName, name)]));
  return [
    {
      id: 'FunctionErrors',
      severity: 'ticket',
      description:
        'Function grants, alerts or notify crashed or timed out: the graph Errors of functions says which, its log group why',
      metric: sumOf(ofEach('Errors', scheduled)),
      threshold: 1,
    },
    {
      id: 'FunctionThrottles',
      severity: 'ticket',
      description: "A function was refused an environment: the account's concurrency is used up",
      // Others draw on the same concurrency, and are called again by Lambda or by their callers.
      metric: sumOf(ofEach('Throttles', ['chat', 'responses'])),
      threshold: 1,
    },
    serverErrors(of('Url5xxCount', 'catalog'), of('Url5xxCount', 'payments')),
    {
      id: 'StreamsBehind',
      severity: 'ticket',
      description:
        'Function ledger is behind the stream of quotas by minutes, so rows are late: its log group says what fails',
      metric: of('IteratorAge', 'ledger', Stats.MAXIMUM),
      threshold: iteratorAgeMax.toMilliseconds(),
    },
  ];
}

/** What Stripe reports is rare: one that was not taken counts as much as so many failures of the other function. */
const failuresMin = 5;

/** Counts crashes, for which Lambda answers 502. */
function serverErrors(catalog: Metric, payments: Metric): AlarmDefinition {
  const window = Duration.hours(1);
  return {
    id: 'ServerErrors',
    severity: 'ticket',
    description: `Within an hour function catalog answered ${failuresMin} times with 5xx or crashed, or payments once: can DynamoDB and the secrets of payments be reached?`,
    metric: new MathExpression({
      expression: `SUM([FILL(catalog, 0), ${failuresMin} * FILL(payments, 0)])`,
      usingMetrics: {
        catalog: catalog.with({ period: window }),
        payments: payments.with({ period: window }),
      },
      label: 'failures, those of payments by their weight',
      period: window,
    }),
    threshold: failuresMin,
  };
}

/** Records of the stream of `quotas` that function ledger gave up: rows of the ledger that nobody tries again to write. */
export function givenUp(mappings: readonly StreamMapping[]): Metric {
  const found = mappings.find((each) => each.function === 'ledger');
  if (found === undefined) throw new Error('function ledger reads no stream');
  return new Metric({
    namespace: 'AWS/Lambda',
    metricName: 'OnFailureDestinationDeliveredEventCount',
    dimensionsMap: { EventSourceMappingUUID: found.mapping.eventSourceMappingId },
    period,
    statistic: Stats.SUM,
  });
}
