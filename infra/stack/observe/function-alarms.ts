/**
 * Alarm definitions for functions and the streams that they read. Each sums or compares one metric of several functions,
 * since one alarm costs as much attention as another; the dashboard shows which function it is.
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
export function combined(how: 'SUM' | 'MAX', metrics: ByName): MathExpression {
  const filled = Object.keys(metrics).map((id) => `FILL(${id}, 0)`);
  return new MathExpression({
    expression: `${how}([${filled.join(', ')}])`,
    usingMetrics: metrics,
    label: how,
    period,
  });
}

/** One alarm can look at ten metrics; that of this function's crashes is in `NeedsAPerson`. */
const diesAlone: FunctionName = 'background';

export const diedAlone = (functions: RelayFunctions): ByName => ({
  died: functions.get(diesAlone).lambda.metric('Errors', { period, statistic: Stats.SUM }),
});

export function functionAlarms(
  functions: RelayFunctions,
  mappings: readonly StreamMapping[],
): AlarmDefinition[] {
  const names = [...functions.byName.keys()].filter((name) => name !== diesAlone);
  const answering = names.filter((name) => functions.get(name).url !== undefined);
  const of = (metricName: string, some: readonly FunctionName[], statistic: string = Stats.SUM): ByName =>
    Object.fromEntries(
      some.map((name) => [name, functions.get(name).lambda.metric(metricName, { period, statistic })]),
    );
  return [
    ...chunksOf(names, metricsMax).map((some, index): AlarmDefinition => ({
      id: `FunctionErrors${index === 0 ? '' : index + 1}`,
      severity: 'ticket',
      description:
        'A function crashed or timed out: the graph Errors of functions says which, its log group why',
      metric: combined('SUM', of('Errors', some)),
      threshold: 1,
    })),
    {
      id: 'FunctionThrottles',
      severity: 'ticket',
      description: "A function was refused an environment: the account's concurrency is used up",
      // Those without a URL are called again by Lambda itself; where that is not enough they are late, which has an alarm.
      metric: combined('SUM', of('Throttles', answering)),
      threshold: 1,
    },
    {
      id: 'ServerErrors',
      severity: 'ticket',
      description:
        'Functions catalog or payments answered with many 5xx: can DynamoDB and the secrets of payments be reached?',
      // Those of chat and responses are failures, and the objective of availability counts them.
      metric: combined(
        'SUM',
        of(
          'Url5xxCount',
          answering.filter((name) => !isAnswering(name)),
        ),
      ),
      threshold: 20,
    },
    streamsBehind(
      of('IteratorAge', [...new Set(mappings.map((mapping) => mapping.function))], Stats.MAXIMUM),
    ),
  ];
}

/** So many metrics one alarm of CloudWatch can have. */
const metricsMax = 10;

const chunksOf = <T>(list: readonly T[], length: number): T[][] =>
  list.length === 0 ? [] : [list.slice(0, length), ...chunksOf(list.slice(length), length)];

const isAnswering = (name: FunctionName): boolean => name === 'chat' || name === 'responses';

const streamsBehind = (ages: ByName): AlarmDefinition => ({
  id: 'StreamsBehind',
  severity: 'ticket',
  description:
    'A function is behind its stream by minutes: the graph Age of streams says which, its log group what fails',
  metric: combined('MAX', ages),
  threshold: iteratorAgeMax.toMilliseconds(),
});

/** By reader of the stream. */
export function givenUp(mappings: readonly StreamMapping[]): ByName {
  const kept = mappings.filter(({ stream }) => stream.keepsFailures);
  const delivered = kept.map(({ function: name, mapping }) => [
    `${name}GivenUp`,
    new Metric({
      namespace: 'AWS/Lambda',
      metricName: 'OnFailureDestinationDeliveredEventCount',
      dimensionsMap: { EventSourceMappingUUID: mapping.eventSourceMappingId },
      period,
      statistic: Stats.SUM,
    }),
  ]);
  return Object.fromEntries(delivered) as ByName;
}
