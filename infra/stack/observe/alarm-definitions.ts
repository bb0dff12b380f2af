/**
 * Alarm definitions for functions and the streams that they read. AWS bills each metric that an alarm looks at, so a function
 * whose end is seen otherwise is left out: docs/observability.md says by which alarm.
 */
import { Duration, Stack } from 'aws-cdk-lib';
import { MathExpression, Metric, Stats, type IMetric } from 'aws-cdk-lib/aws-cloudwatch';
import { PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Topic } from 'aws-cdk-lib/aws-sns';
import type { Construct } from 'constructs';
import { functionDescriptions, type FunctionName } from '../constructs/function-descriptions.ts';
import type { RelayFunctions } from '../constructs/relay-functions.ts';
import type { StreamMapping } from '../constructs/triggers.ts';
import { physicalTableName, type TableName } from '../../../shared/tables/table-names.ts';
import { relayMetric } from './relay-metric.ts';

const period = Duration.minutes(5);
const iteratorAgeMax = Duration.minutes(5);

/** Names must begin with a small letter, as those of functions do. A metric without any value is left out. */
function sumOf(metrics: Record<string, IMetric>): MathExpression {
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
function givenUp(mappings: readonly StreamMapping[]): Metric {
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

// Alarm definitions for what the relay itself reports, and for its tables.

/** `shared/adapters/telemetry/log.ts` says which events count in the first, the second and the last but one. */
export function relayAlarms(relayName: string, mappings: readonly StreamMapping[]): AlarmDefinition[] {
  const metric = (name: string, statistic: string): Metric => relayMetric(relayName, name, statistic);
  return [
    {
      id: 'MoneyWrong',
      severity: 'page',
      description:
        'An account does not balance, a charge was lost, an item of money cannot be read, or records of the stream of quotas were given up: query Events that need a person names it, the bucket of stream failures has the records',
      // Grants that were given up are applied by the schedule, or count as MoneyWrong.
      metric: sumOf({ wrong: metric('MoneyWrong', Stats.SUM), givenUp: givenUp(mappings) }),
      threshold: 1,
    },
    {
      id: 'NeedsAPerson',
      severity: 'ticket',
      description:
        'Something happened that the relay cannot mend by itself: query Events that need a person, or Faults, names it',
      metric: metric('NeedsAPerson', Stats.SUM),
      threshold: 1,
    },
    {
      id: 'SweeperStopped',
      severity: 'page',
      description:
        'Function sweeper did not end a run for ten minutes, so balances stay held: its schedule is off, or its log says why',
      // A failed run writes no metric, so this counts the successful runs.
      metric: metric('OpenReservations', Stats.SAMPLE_COUNT),
      threshold: 1,
      triggers: 'below',
      periods: 2,
    },
    {
      id: 'BadRows',
      severity: 'ticket',
      description:
        'Rows have mistakes and are not used as they are: each says so in its attribute _problem. Or a channel serves a model that no rule prices (UnpricedModels): its calls are refused, or free. Or function config did not end a run for a quarter of an hour, so edits are not live: its log says why',
      // A run writes the count, also 0, and the schedule has three runs in the period.
      metric: metric('BadRows', Stats.MAXIMUM).with({ period: Duration.minutes(15) }),
      threshold: 1,
      missingTriggers: true,
    },
    {
      id: 'Oddities',
      severity: 'ticket',
      description:
        'Ten times within five minutes the state of a turn or a response was not kept or an upstream reported counts that cannot be true, or a function did not know the form of the configuration: look for turn_state_lost, response_not_stored and config_format_unknown, run the query Implausible usage by channel',
      // Apart from NeedsAPerson, which a channel that never reports counts would keep in alarm for good.
      metric: metric('Oddities', Stats.SUM),
      threshold: 10,
    },
    tableAlarm(relayName),
  ];
}

/** The scheduled call writes 1 for an answer and 0 for none; if it does not run at all, it writes nothing. */
export const canaryAlarm = (relayName: string): AlarmDefinition => ({
  id: 'CanaryFailed',
  severity: 'page',
  description:
    'The scheduled call was not answered for a quarter of an hour: the log of function canary says what failed',
  metric: relayMetric(relayName, 'CanarySuccesses', Stats.SUM).with({ period: Duration.minutes(15) }),
  threshold: 1,
  triggers: 'below',
});

/**
 * Calls that this table throttles are answered with 503, but those of one account alone are too few for the objective. Of
 * the other tables docs/observability.md says what sees them.
 */
const tableAlarm = (relayName: string): AlarmDefinition => ({
  id: 'TableThrottles',
  severity: 'ticket',
  description:
    'DynamoDB throttled writes to quotas: one account has too many requests at once, or traffic doubled at once; the graph Throttled calls of tables says what else is throttled',
  metric: throttles(relayName, 'quotas', 'WriteThrottleEvents'),
  threshold: 10,
});

const throttles = (relayName: string, name: TableName, metricName: string): Metric =>
  new Metric({
    namespace: 'AWS/DynamoDB',
    metricName,
    dimensionsMap: { TableName: physicalTableName(relayName, name) },
    statistic: Stats.SUM,
    period,
  });

/** Throttled reads and writes of a table. */
export function tableThrottles(relayName: string, name: TableName): IMetric {
  return new MathExpression({
    expression: `FILL(${name}Reads, 0) + FILL(${name}Writes, 0)`,
    // Names must be unique in a graph of several tables.
    usingMetrics: {
      [`${name}Reads`]: throttles(relayName, name, 'ReadThrottleEvents'),
      [`${name}Writes`]: throttles(relayName, name, 'WriteThrottleEvents'),
    },
    label: name,
    period,
  });
}

// What an alarm is made from: a metric and its threshold, what it covers, and whom it wakes.

/** `page`: customers are harmed now, so somebody is woken. `ticket`: somebody looks on the next working day. */
export type Severity = 'page' | 'ticket';

export interface AlarmDefinition {
  id: string;
  severity: Severity;
  description: string;
  metric: IMetric;
  /** The value per period of the metric that triggers the alarm. */
  threshold: number;
  /** `below`: values under the threshold and missing data trigger. Absent: values at or above it trigger. */
  triggers?: 'below';
  /** True: missing data triggers too. For metrics that somebody writes at least once in each period. */
  missingTriggers?: boolean;
  /** The last periods that are looked at. Default: 1. */
  periods?: number;
  /** How many of them must trigger. Default: all. */
  periodsMin?: number;
  /** Of a percentile. True: the alarm keeps its state while there are too few values for it. */
  wantsManyValues?: boolean;
}

// A topic that the alarms of its account may publish to.

export function alarmTopic(scope: Construct, id: string): Topic {
  const topic = new Topic(scope, id, { enforceSSL: true });
  // A topic policy replaces SNS's default policy, under which the account's alarms may publish.
  topic.addToResourcePolicy(
    new PolicyStatement({
      principals: [new ServicePrincipal('cloudwatch.amazonaws.com')],
      actions: ['sns:Publish'],
      resources: [topic.topicArn],
      conditions: { StringEquals: { 'aws:SourceAccount': Stack.of(scope).account } },
    }),
  );
  return topic;
}
