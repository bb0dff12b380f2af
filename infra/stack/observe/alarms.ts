/**
 * The relay's alarms, a row each, and the topic that they go to: a given one, or one that mails. Without either the alarms
 * still exist, for the console and other tools. AWS bills each metric that an alarm looks at, so a function whose end is seen
 * otherwise is left out: docs/observability.md says by which alarm.
 */
import { Stack, Token, Duration } from 'aws-cdk-lib';
import {
  Alarm,
  ComparisonOperator,
  TreatMissingData,
  Metric,
  MathExpression,
  Stats,
  type IMetric,
} from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import { PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import { Topic, type ITopic } from 'aws-cdk-lib/aws-sns';
import { EmailSubscription } from 'aws-cdk-lib/aws-sns-subscriptions';
import { Construct } from 'constructs';
import {
  answersCalls,
  functionDescriptions,
  type FunctionName,
} from '../constructs/function-descriptions.ts';
import type { RelayFunctions } from '../constructs/relay-functions.ts';
import type { RelayService } from '../constructs/relay-service.ts';
import type { StreamMapping, Triggers } from '../constructs/triggers.ts';
import {
  countFailedPayments,
  createRelayMetric,
  createThrottleMetric,
  createVersionErrors,
  createVersionLines,
} from './relay-metric.ts';

export interface Objectives {
  /** Percent of calls that must not fail. Default: 99.5. */
  availabilityPercent?: number;
  /** Percent of answers that must start in time. Default: 95. */
  firstContentPercent?: number;
  /** Seconds from the arrival of the call to the first content that count as in time. Default: 10. */
  firstContentSeconds?: number;
}

interface AlarmParts {
  relayName: string;
  functions: RelayFunctions;
  triggers: Triggers;
  /** That answers in the place of functions. */
  service: RelayService | undefined;
  objectives: Objectives;
  /** New versions are watched while they get traffic step by step. */
  shifting: boolean;
  /** There is a scheduled call. */
  canary: boolean;
}

export interface AlarmsProps extends AlarmParts {
  email?: string | undefined;
  /** Its policy must let CloudWatch publish. Created if there is an address but no topic. */
  topic?: ITopic | undefined;
  /** Receives pages only. By default they go where tickets go. */
  pageEmail?: string | undefined;
  /** Key of topics created here. */
  topicKey?: IKey | undefined;
  /** False: there is a topic for notices, but no alarm. */
  on: boolean;
}

export class Alarms extends Construct {
  readonly topic?: ITopic;
  readonly all: Alarm[] = [];

  constructor(scope: Construct, id: string, props: AlarmsProps) {
    super(scope, id);
    const { email, pageEmail, topicKey } = props;
    const topic =
      props.topic ?? (email === undefined ? undefined : createAlarmTopic(this, 'Topic', topicKey));
    if (topic) this.topic = requireUsableTopic(Stack.of(this), topic);
    if (email !== undefined) topic?.addSubscription(new EmailSubscription(email));
    const pageTopic = pageEmail === undefined ? topic : createAlarmTopic(this, 'PageTopic', topicKey);
    if (pageEmail !== undefined) pageTopic?.addSubscription(new EmailSubscription(pageEmail));
    for (const row of props.on ? listAlarmRows(props) : []) {
      const isBelow = row.triggers === 'below';
      const alarm = new Alarm(this, row.id, {
        alarmDescription: `[${row.severity}] ${row.description}`,
        metric: row.metric,
        threshold: row.threshold,
        comparisonOperator: isBelow
          ? ComparisonOperator.LESS_THAN_THRESHOLD
          : ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
        evaluationPeriods: row.periods ?? 1,
        ...(row.periodsMin !== undefined && { datapointsToAlarm: row.periodsMin }),
        ...(row.wantsManyValues && { evaluateLowSampleCountPercentile: 'ignore' }),
        treatMissingData:
          isBelow || row.missingTriggers ? TreatMissingData.BREACHING : TreatMissingData.NOT_BREACHING,
      });
      const receiver = row.severity === 'page' ? pageTopic : topic;
      if (receiver) alarm.addAlarmAction(new SnsAction(receiver));
      this.all.push(alarm);
    }
  }

  /** The alarm that gives up a deployment of the function. */
  ofNewVersion(name: FunctionName): Alarm {
    const found = this.all.find(({ node }) => node.id === nameNewVersionAlarm(name));
    if (found === undefined) throw new Error(`no alarm on the newest version of ${name}`);
    return found;
  }
}

/** A topic that the alarms of its account may publish to. */
export function createAlarmTopic(scope: Construct, id: string, key?: IKey): Topic {
  const topic = new Topic(scope, id, { enforceSSL: true, ...(key && { masterKey: key }) });
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

/** Alarms stay silent, without an error, where their topic is in another region or keeps an order. */
function requireUsableTopic({ region }: Stack, topic: ITopic): ITopic {
  const there = topic.env.region;
  const isElsewhere = region !== there && !Token.isUnresolved(region) && !Token.isUnresolved(there);
  if (isElsewhere || topic.fifo)
    throw new Error(`alarmTopic: alarms in ${region} need a standard topic there, not ${topic.topicArn}`);
  return topic;
}

interface AlarmRow {
  id: string;
  /** `page`: customers are harmed now, so somebody is woken. `ticket`: somebody looks on the next working day. */
  severity: 'page' | 'ticket';
  description: string;
  metric: IMetric;
  /** The value per period of the metric that triggers the alarm. */
  threshold: number;
  /** With `below`, values under the threshold and missing data trigger. By default values at or above it do. */
  triggers?: 'below';
  /** True: missing data triggers too. For metrics that somebody writes at least once in each period. */
  missingTriggers?: boolean;
  /** The last periods that are looked at. Default: 1. */
  periods?: number;
  /** How many of them must trigger. Default: all. */
  periodsMin?: number;
  /** For a percentile: keep the state while there are too few values. */
  wantsManyValues?: boolean;
}

const fiveMinutes = Duration.minutes(5);
const quarterHour = Duration.minutes(15);
const hour = Duration.hours(1);

/**
 * Other alarms notice when these stop: SweeperStopped, BadRows, StreamsBehind, and NeedsAPerson by the reservation
 * that expires.
 */
const seenOtherwise = new Set<FunctionName>(['sweeper', 'config', 'ledger', 'background']);

/** Stripe's reports are rare: one rejected report counts as much as this many failures elsewhere. */
const failuresMin = 5;

/** `shared/adapters/telemetry/log.ts` says which events count as MoneyWrong, NeedsAPerson and Oddities. */
function listAlarmRows(parts: AlarmParts): AlarmRow[] {
  const { relayName, functions, triggers, service, shifting, canary } = parts;
  const own = (name: string, statistic: string, period = fiveMinutes): Metric =>
    createRelayMetric(relayName, name, statistic).with({ period });
  const measureLambda = (
    metric: string,
    name: FunctionName,
    statistic: string = Stats.SUM,
    period = fiveMinutes,
  ) => functions.get(name).lambda.metric(metric, { period, statistic });
  const measureEach = (metric: string, names: readonly FunctionName[], period = fiveMinutes) =>
    Object.fromEntries(names.map((name) => [name, measureLambda(metric, name, Stats.SUM, period)]));
  const names = [...functions.byName.keys()];
  const answering = names.filter(answersCalls);
  const buffered = names.filter((name) => functionDescriptions[name].url === 'BUFFERED');
  // An API counts what all functions answer together, upstreams' failures too.
  const viaUrls = functions.get('payments').url !== undefined;
  const measureFailedPayments = () =>
    countFailedPayments(relayName, functions.get('payments').lambda.logGroup).with({ period: hour });
  const crashing = names.filter((name) => !functionDescriptions[name].url && !seenOtherwise.has(name));
  return [
    ...windows.flatMap((window) => [
      alarmOnAvailability(parts, window, window.severity === 'page' ? answering : []),
      alarmOnFirstContent(parts, window),
    ]),
    {
      id: 'MoneyWrong',
      severity: 'page',
      description:
        'An account does not balance, a charge was lost, an item of money cannot be read, or records of the stream of quotas were given up: query Events that need a person names it, the bucket of stream failures has the records',
      // Grants that were given up are applied by the schedule, or count as MoneyWrong.
      metric: sumOf(
        { wrong: own('MoneyWrong', Stats.SUM), givenUp: measureGivenUp(triggers.mappings) },
        'sum',
      ),
      threshold: 1,
    },
    {
      id: 'NeedsAPerson',
      severity: 'ticket',
      description:
        'Something happened that the relay cannot mend by itself: query Events that need a person, or Faults, names it',
      metric: own('NeedsAPerson', Stats.SUM),
      threshold: 1,
    },
    {
      id: 'SweeperStopped',
      severity: 'page',
      description:
        'Function sweeper did not end a run for ten minutes, so balances stay held: its schedule is off, or its log says why',
      // A failed run writes no metric, so this counts the successful runs.
      metric: own('OpenReservations', Stats.SAMPLE_COUNT),
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
      metric: own('BadRows', Stats.MAXIMUM, quarterHour),
      threshold: 1,
      missingTriggers: true,
    },
    {
      id: 'Oddities',
      severity: 'ticket',
      description:
        'Ten times within five minutes the state of a turn or a response was not kept or an upstream reported counts that cannot be true, or a function did not know the form of the configuration: look for turn_state_lost, response_not_stored and config_format_unknown, run the query Implausible usage by channel',
      // Apart from NeedsAPerson, which a channel that never reports counts would keep in alarm for good.
      metric: own('Oddities', Stats.SUM),
      threshold: 10,
    },
    {
      // Calls that this table throttles are answered with 503, but those of one account alone are too few for the
      // objective. Of the other tables docs/observability.md says what sees them.
      id: 'TableThrottles',
      severity: 'ticket',
      description:
        'DynamoDB throttled writes to quotas: one account has too many requests at once, or traffic doubled at once; the graph Throttled calls of tables says what else is throttled',
      metric: createThrottleMetric(relayName, 'quotas', 'WriteThrottleEvents'),
      threshold: 10,
    },
    {
      id: 'FunctionErrors',
      severity: 'ticket',
      description: `Function ${crashing.join(' or ')} crashed or timed out: the graph Errors of functions says which, its log group why`,
      metric: sumOf(measureEach('Errors', crashing), 'sum'),
      threshold: 1,
    },
    ...(service
      ? []
      : [
          {
            id: 'FunctionThrottles',
            severity: 'ticket',
            description: "A function was refused an environment: the account's concurrency is used up",
            // Others draw on the same concurrency, and are called again by Lambda or by their callers.
            metric: sumOf(measureEach('Throttles', answering), 'sum'),
            threshold: 1,
          } as const,
        ]),
    {
      // Crashes too, for which Lambda and a balancer answer 502.
      id: 'ServerErrors',
      severity: 'ticket',
      description: `Within an hour ${service ? `the balancer had no server, or selfservice no answer, for ${failuresMin} requests, or payments failed` : `functions catalog and selfservice ${viaUrls ? `answered ${failuresMin} times with 5xx or crashed` : `crashed ${failuresMin} times`}, or payments`} once: can DynamoDB and the secrets of payments be reached?`,
      metric: sumOf(
        {
          ...(service && { unanswered: service.unanswered(hour) }),
          ...(viaUrls
            ? measureEach('Url5xxCount', buffered, hour)
            : { ...measureEach('Errors', buffered, hour), refused: measureFailedPayments() }),
        },
        'failures, those of payments by their weight',
        hour,
        { payments: failuresMin, refused: failuresMin },
      ),
      threshold: failuresMin,
    },
    {
      id: 'StreamsBehind',
      severity: 'ticket',
      description:
        'Function ledger is behind the stream of quotas by minutes, so rows are late: its log group says what fails',
      metric: measureLambda('IteratorAge', 'ledger', Stats.MAXIMUM),
      threshold: fiveMinutes.toMilliseconds(),
    },
    ...(canary
      ? [
          {
            id: 'CanaryFailed',
            severity: 'page',
            description:
              'The scheduled call was not answered for a quarter of an hour: the log of function canary says what failed',
            // The call writes 1 for an answer and 0 for none; if it does not run at all, it writes nothing.
            metric: own('CanarySuccesses', Stats.SUM, quarterHour),
            threshold: 1,
            triggers: 'below',
          } as const,
        ]
      : []),
    ...(shifting ? names.flatMap((name) => alarmOnNewVersion(parts, name)) : []),
  ];
}

/**
 * A metric without any value is left out of a SUM, so each is filled.
 * @param metrics by names that begin with a small letter, as those of functions do
 */
const sumOf = (
  metrics: Record<string, IMetric>,
  label?: string,
  period = fiveMinutes,
  weights: Record<string, number> = {},
): MathExpression => {
  const filled = Object.keys(metrics).map((id) => {
    const weight = weights[id];
    return `${weight === undefined ? '' : `${weight} * `}FILL(${id}, 0)`;
  });
  return new MathExpression({
    expression: `SUM([${filled.join(', ')}])`,
    usingMetrics: metrics,
    ...(label !== undefined && { label }),
    period,
  });
};

/** Records of the stream of `quotas` that function ledger gave up: rows of the ledger that nobody tries again to write. */
function measureGivenUp(mappings: readonly StreamMapping[]): Metric {
  const found = mappings.find((each) => each.function === 'ledger');
  if (found === undefined) throw new Error('function ledger reads no stream');
  return new Metric({
    namespace: 'AWS/Lambda',
    metricName: 'OnFailureDestinationDeliveredEventCount',
    dimensionsMap: { EventSourceMappingUUID: found.mapping.eventSourceMappingId },
    period: fiveMinutes,
    statistic: Stats.SUM,
  });
}

// Alarms on how fast the error budget of an objective burns. A burn rate of 1 spends the budget in exactly 30 days; one
// alarm looks for outages that spend it in two days, the other for faults that spend it in ten.

interface Window {
  severity: AlarmRow['severity'];
  suffix: string;
  period: Duration;
  burnRate: number;
  /** With fewer calls a ratio says nothing: one failure in two calls is not an outage. */
  callsMin: number;
}

const windows: Window[] = [
  { severity: 'page', suffix: 'Page', period: hour, burnRate: 14.4, callsMin: 20 },
  { severity: 'ticket', suffix: 'Ticket', period: Duration.days(1), burnRate: 3, callsMin: 50 },
];

/** A weak objective allows so much that its budget cannot burn 14.4 times as fast: this share triggers in any case. */
const percentMax = 90;

/** 100 - 99.9 is not 0.1. */
const roundPercent = (percent: number): number => Number(percent.toFixed(6));

/** Percent of calls that may not be as the objective wants them, and percent that triggers. */
function sharesOf(objectivePercent: number, { burnRate }: Window): { budget: number; trigger: number } {
  const budget = roundPercent(100 - objectivePercent);
  return { budget, trigger: Math.min(roundPercent(burnRate * budget), percentMax) };
}

/** @param dying whose calls that write no line, as their function died, are added; each makes a ticket anyway, when the sweeper closes it */
function alarmOnAvailability(
  { relayName, functions, service, objectives }: AlarmParts,
  window: Window,
  dying: readonly FunctionName[],
): AlarmRow {
  const { availabilityPercent = 99.5 } = objectives;
  const { severity, suffix, period, callsMin } = window;
  const { budget, trigger } = sharesOf(availabilityPercent, window);
  const died = Object.fromEntries(
    dying.map((name) => [
      `${name}Died`,
      functions.get(name).lambda.metricErrors({ period, statistic: Stats.SUM }),
    ]),
  );
  // No line either: the balancer had no server for them.
  if (service && severity === 'page') died['unanswered'] = service.unanswered(period);
  // 1 or 0 for each call that was not refused: a flood of wrong keys would hide an outage.
  const calls = (statistic: string): IMetric =>
    createRelayMetric(relayName, 'CallFailed', statistic).with({ period });
  return {
    id: `Availability${suffix}`,
    severity,
    description: `Of a hundred calls ${trigger} fail, and ${availabilityPercent} % availability allows ${budget}: the dashboard says on which channels, relay-ops channel list how they are`,
    metric: new MathExpression({
      expression: `IF(calls >= ${callsMin}, 100 * bad / calls, 0)`,
      usingMetrics: {
        calls: sumOf({ answered: calls(Stats.SAMPLE_COUNT), ...died }, undefined, period),
        bad: sumOf({ failed: calls(Stats.SUM), ...died }, undefined, period),
      },
      label: 'failures in a hundred calls',
      period,
    }),
    threshold: trigger,
  };
}

/**
 * By a percentile, which is one metric to pay for: that 72 of 100 answers are late and that the 28th percentile is late
 * are the same.
 */
function alarmOnFirstContent({ relayName, objectives }: AlarmParts, window: Window): AlarmRow {
  const { firstContentPercent = 95, firstContentSeconds = 10 } = objectives;
  const { severity, suffix, period } = window;
  const { budget, trigger } = sharesOf(firstContentPercent, window);
  const percentile = Stats.percentile(roundPercent(100 - trigger));
  return {
    id: `FirstContent${suffix}`,
    severity,
    description: `Of a hundred answers ${trigger} begin after ${firstContentSeconds} s or later, and the objective allows ${budget}: the dashboard says on which channels`,
    metric: createRelayMetric(relayName, 'FirstContentMs', percentile).with({ period }),
    threshold: firstContentSeconds * 1000,
    wantsManyValues: true,
  };
}

// The alarms that give up a deployment: one for each function with a URL, on its newest version alone.

/** From so many calls on a ratio is trusted. */
const callsMin = 50;
/** So many failures are enough where nothing but failures was seen: a new version may get few calls. */
const onlyFailuresMin = 5;
const failurePercentMax = 10;
/** For a function without log lines to count: runs that end in an error, minute by minute. */
const minutes = { looked: 5, bad: 3 };

const nameNewVersionAlarm = (name: FunctionName): string => `${name}NewVersion`;

function alarmOnNewVersion({ relayName, functions }: AlarmParts, name: FunctionName): AlarmRow[] {
  const { live } = functions.get(name);
  if (live === undefined) return [];
  const shifted = { relayName, name, live };
  const errors = createVersionErrors(shifted);
  const common = {
    id: nameNewVersionAlarm(name),
    severity: 'ticket',
    description: `The newest version of function ${name} fails, and the deployment is rolled back: its log group says why`,
  } as const;
  if (!answersCalls(name))
    return [
      {
        ...common,
        // Lambda says 1 for a run with an error, else 0. Were it to say nothing then, these were the minutes with an error.
        metric: errors.with({ statistic: Stats.AVERAGE, period: Duration.minutes(1) }),
        threshold: failurePercentMax / 100,
        periods: minutes.looked,
        periodsMin: minutes.bad,
      },
    ];
  const metric = new MathExpression({
    expression: `IF(all >= ${callsMin}, 100 * bad / all, IF(bad >= ${onlyFailuresMin} AND bad >= all, 100, 0))`,
    // A call whose function dies writes no line, so it is added.
    usingMetrics: {
      bad: sumOf({ failures: createVersionLines('VersionFailures', shifted), errors }),
      all: sumOf({ calls: createVersionLines('VersionCalls', shifted), errors }),
    },
    label: 'failures of the newest version in a hundred calls',
    period: fiveMinutes,
  });
  return [{ ...common, metric, threshold: failurePercentMax }];
}
