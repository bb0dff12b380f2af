/**
 * Alarm definitions for functions and the streams that they read. AWS bills each metric that an alarm looks at, so a function
 * whose end is seen otherwise is left out: docs/observability.md says by which alarm.
 */
import { Duration } from 'aws-cdk-lib';
import { MathExpression, Metric, Stats, type IMetric } from 'aws-cdk-lib/aws-cloudwatch';
import { functionDescriptions, type FunctionName } from '../constructs/function-descriptions.ts';
import type { RelayFunctions } from '../constructs/relay-functions.ts';
import type { StreamMapping } from '../constructs/triggers.ts';
import type { AlarmDefinition } from './alarm-definition.ts';

const period = Duration.minutes(5);
const iteratorAgeMax = Duration.minutes(5);

/** Names must begin with a small letter, as those of functions do. A metric without any value is left out. */
export function sumOf(metrics: Record<string, IMetric>): MathExpression {
  const filled = Object.keys(metrics).map((id) => `FILL(${id}, 0)`);
  return new MathExpression({
    expression: `SUM([${filled.join(', ')}])`,
    usingMetrics: metrics,
    label: 'sum',
    period,
  });
}

/** Whose end another alarm sees: SweeperStopped, BadRows, StreamsBehind, and NeedsAPerson by the reservation that expires. */
const seenOtherwise = new Set<FunctionName>(['sweeper', 'config', 'ledger', 'background']);

/** Those that answer calls with a model. */
export const answering = (functions: RelayFunctions): FunctionName[] =>
  [...functions.byName.keys()].filter((name) => functionDescriptions[name].answersCalls === true);

export function functionAlarms(functions: RelayFunctions): AlarmDefinition[] {
  const of = (metricName: string, name: FunctionName, statistic: string = Stats.SUM): Metric =>
    functions.get(name).lambda.metric(metricName, { period, statistic });
  const ofEach = (metricName: string, names: readonly FunctionName[]): Record<string, Metric> =>
    Object.fromEntries(names.map((name) => [name, of(metricName, name)]));
  const names = [...functions.byName.keys()];
  const inBackground = names.filter((name) => functions.get(name).url === undefined);
  const buffered = names.filter((name) => functionDescriptions[name].url === 'BUFFERED');
  const crashing = inBackground.filter((name) => !seenOtherwise.has(name));
  return [
    {
      id: 'FunctionErrors',
      severity: 'ticket',
      description: `Function ${crashing.join(' or ')} crashed or timed out: the graph Errors of functions says which, its log group why`,
      metric: sumOf(ofEach('Errors', crashing)),
      threshold: 1,
    },
    {
      id: 'FunctionThrottles',
      severity: 'ticket',
      description: "A function was refused an environment: the account's concurrency is used up",
      // Others draw on the same concurrency, and are called again by Lambda or by their callers.
      metric: sumOf(ofEach('Throttles', answering(functions))),
      threshold: 1,
    },
    serverErrors(ofEach('Url5xxCount', buffered)),
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

/** What Stripe reports is rare: one report that was not taken counts as much as so many failures elsewhere. */
const failuresMin = 5;

/** Counts crashes, for which Lambda answers 502. */
function serverErrors(failures: Record<string, Metric>): AlarmDefinition {
  const window = Duration.hours(1);
  const weighted = Object.keys(failures).map((name) =>
    name === 'payments' ? `${failuresMin} * FILL(${name}, 0)` : `FILL(${name}, 0)`,
  );
  return {
    id: 'ServerErrors',
    severity: 'ticket',
    description: `Within an hour function catalog answered ${failuresMin} times with 5xx or crashed, or payments once: can DynamoDB and the secrets of payments be reached?`,
    metric: new MathExpression({
      expression: `SUM([${weighted.join(', ')}])`,
      usingMetrics: Object.fromEntries(
        Object.entries(failures).map(([name, metric]) => [name, metric.with({ period: window })]),
      ),
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
