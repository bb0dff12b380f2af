/**
 * The relay's alarms, one row each, and their topic: a given one, or one that sends mail. Without a topic the alarms still exist, for
 * the console and other tools. AWS bills every metric that an alarm reads, so functions whose failures another alarm notices have
 * none: docs/observability.md says which.
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
  /** An answer starts in time if its first content comes within this many seconds of the call. Default: 10. */
  firstContentSeconds?: number;
}

interface AlarmParts {
  relayName: string;
  functions: RelayFunctions;
  triggers: Triggers;
  /** Answers instead of the functions. */
  service: RelayService | undefined;
  objectives: Objectives;
  /** True if deployments shift traffic step by step, so new versions need alarms. */
  shifting: boolean;
  /** True if there is a scheduled call. */
  canary: boolean;
}

export interface AlarmsProps extends AlarmParts {
  email?: string | undefined;
  /** Its policy must let CloudWatch publish. Created if there is an address but no topic. */
  topic?: ITopic | undefined;
  /** Receives only pages. By default they go where tickets go. */
  pageEmail?: string | undefined;
  /** Encrypts topics that are created here. */
  topicKey?: IKey | undefined;
  /** False creates the topic for notices, but no alarm. */
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
      const missing = isBelow || row.missingTriggers;
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
        // A new alarm is in the state INSUFFICIENT_DATA, and only a change of state runs an action. So a new stack is silent until its
        // schedules have run once. With BREACHING it would alarm at once.
        treatMissingData: missing ? TreatMissingData.MISSING : TreatMissingData.NOT_BREACHING,
      });
      const receiver = row.severity === 'page' ? pageTopic : topic;
      if (receiver) alarm.addAlarmAction(new SnsAction(receiver));
      if (receiver && missing) alarm.addInsufficientDataAction(new SnsAction(receiver));
      this.all.push(alarm);
    }
  }

  /** Returns the alarm on the newest version of the function, which rolls back a deployment. */
  ofNewVersion = (name: FunctionName): Alarm => this.named(nameNewVersionAlarm(name));

  named(id: string): Alarm {
    const found = this.all.find(({ node }) => node.id === id);
    if (found === undefined) throw new Error(`no alarm ${id}`);
    return found;
  }
}

/** Creates a topic that alarms of this account can publish to. */
export function createAlarmTopic(scope: Construct, id: string, key?: IKey): Topic {
  const topic = new Topic(scope, id, { enforceSSL: true, ...(key && { masterKey: key }) });
  // A topic policy replaces SNS's default policy, which lets alarms of the account publish.
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

/** Alarms can't reach a topic in another region or a FIFO topic, and report no error. */
function requireUsableTopic({ region }: Stack, topic: ITopic): ITopic {
  const there = topic.env.region;
  const isElsewhere = region !== there && !Token.isUnresolved(region) && !Token.isUnresolved(there);
  if (isElsewhere || topic.fifo)
    throw new Error(`alarmTopic: alarms in ${region} need a standard topic there, not ${topic.topicArn}`);
  return topic;
}

interface AlarmRow {
  id: string;
  /** `page`: customers are harmed now, so wake somebody. `ticket`: look at it on the next working day. */
  severity: 'page' | 'ticket';
  description: string;
  metric: IMetric;
  /** The value per period that triggers the alarm. */
  threshold: number;
  /** With `below`, the alarm triggers on values under the threshold and when data stops. By default it triggers on values at or above it. */
  triggers?: 'below';
  /** True if the alarm also triggers when data stops. Only for metrics with at least one value in each period. */
  missingTriggers?: boolean;
  /** The number of periods that the alarm evaluates. Default: 1. */
  periods?: number;
  /** The number of these periods that must trigger. Default: all. */
  periodsMin?: number;
  /** Keeps the state of a percentile alarm while there are too few values. */
  wantsManyValues?: boolean;
}

const fiveMinutes = Duration.minutes(5);
const quarterHour = Duration.minutes(15);
const hour = Duration.hours(1);

/**
 * Functions whose failures other alarms notice: SweeperStopped, BadRows, StreamsBehind, and NeedsAPerson when the reservation
 * expires.
 */
const seenOtherwise = new Set<FunctionName>(['sweeper', 'config', 'ledger', 'background']);

/** Stripe's events are rare, so one rejected event counts as many failures elsewhere. */
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
  // An API counts the answers of all functions together, including failures of upstreams.
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
        'An account or a ledger row does not balance, a charge was lost, or an item of money cannot be read. The saved query Events that need a person shows which',
      metric: own('MoneyWrong', Stats.SUM),
      threshold: 1,
    },
    {
      // Not part of MoneyWrong: deployments of the mapping's alias depend on MoneyWrong, so MoneyWrong must not depend on the mapping.
      id: 'RecordsGivenUp',
      severity: 'page',
      description:
        'Records of the stream of quotas were not processed, so ledger rows are missing. The bucket of stream failures has the records',
      // The schedule applies grants that the stream dropped. If it can't, they count as MoneyWrong.
      metric: measureGivenUp(triggers.mappings),
      threshold: 1,
    },
    {
      id: 'NeedsAPerson',
      severity: 'ticket',
      description:
        'Something happened that the relay cannot repair by itself. The saved query Events that need a person, or Faults, shows it',
      metric: own('NeedsAPerson', Stats.SUM),
      threshold: 1,
    },
    {
      id: 'SweeperStopped',
      severity: 'page',
      description:
        'Function sweeper has not completed a run for ten minutes, so expired reservations are not settled. Check its schedule, then its log group',
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
        'Rows are invalid: the attribute _problem of each says why. Or a channel serves a model without a price (UnpricedModels), so its calls are refused or free. Or function config has not completed a run for 15 minutes, so edits are not live: its log group shows why',
      // Each run writes the count, even if it is 0, and the schedule runs three times in a period.
      metric: own('BadRows', Stats.MAXIMUM, quarterHour),
      threshold: 1,
      missingTriggers: true,
    },
    {
      id: 'Oddities',
      severity: 'ticket',
      description:
        'Ten times within five minutes, turn state or a response was not stored, or an upstream reported implausible usage. Or a function could not read the format of the configuration. Search the log for turn_state_lost, response_not_stored and config_format_unknown, and run the saved query Implausible usage by channel',
      // NeedsAPerson excludes this count, because a channel that never reports usage would keep it in alarm forever.
      metric: own('Oddities', Stats.SUM),
      threshold: 10,
    },
    {
      // A call that this table throttles gets a 503, but the calls of a single account are too few for the objective.
      // docs/observability.md says which alarms notice throttles of the other tables.
      id: 'TableThrottles',
      severity: 'ticket',
      description:
        'DynamoDB throttled writes to quotas: one account has too many concurrent requests, or traffic doubled suddenly. The graph Throttled calls of tables shows all throttled tables',
      metric: createThrottleMetric(relayName, 'quotas', 'WriteThrottleEvents'),
      threshold: 10,
    },
    {
      id: 'FunctionErrors',
      severity: 'ticket',
      description: `Function ${crashing.join(' or ')} crashed or timed out. The graph Errors of functions shows which one, its log group shows why`,
      metric: sumOf(measureEach('Errors', crashing), 'sum'),
      threshold: 1,
    },
    ...(service
      ? []
      : [
          {
            id: 'FunctionThrottles',
            severity: 'ticket',
            description:
              "Lambda throttled a function, because the account's concurrency is used up. relay-ops doctor shows the quota",
            // The other functions share this concurrency. Lambda or their callers retry them.
            metric: sumOf(measureEach('Throttles', answering), 'sum'),
            threshold: 1,
          } as const,
        ]),
    {
      // Includes crashes, for which Lambda and the load balancer answer 502.
      id: 'ServerErrors',
      severity: 'ticket',
      description: `Within an hour ${service ? `the balancer had no server, or selfservice no answer, for ${failuresMin} requests, or payments failed` : `functions catalog and selfservice ${viaUrls ? `answered ${failuresMin} times with 5xx or crashed` : `crashed ${failuresMin} times`}, or payments`} once. Check that DynamoDB and the secrets of payments can be reached`,
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
        'Function ledger is minutes behind the stream of quotas, so ledger rows are late. Its log group shows what fails',
      metric: measureLambda('IteratorAge', 'ledger', Stats.MAXIMUM),
      threshold: fiveMinutes.toMilliseconds(),
    },
    ...(canary
      ? [
          {
            id: 'CanaryFailed',
            severity: 'page',
            description:
              'The scheduled call has failed for 15 minutes. The log group of function canary shows why',
            // A call that gets an answer writes 1, one that gets none writes 0, and one that never ran writes nothing.
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
 * SUM omits a metric without values, so each one is filled.
 * @param metrics by name; names must begin with a small letter
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

/** Counts records of `quotas` that the function `ledger` dropped: ledger rows that nothing retries. */
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

// Alarms on the burn rate of an objective's error budget. A burn rate of 1 uses the budget up in exactly 30 days. One
// alarm detects outages that use it up in two days, the other faults that use it up in ten.

interface Window {
  severity: AlarmRow['severity'];
  suffix: string;
  period: Duration;
  burnRate: number;
  /** With fewer calls a ratio is meaningless: one failure in two calls is no outage. */
  callsMin: number;
}

const windows: Window[] = [
  { severity: 'page', suffix: 'Page', period: hour, burnRate: 14.4, callsMin: 20 },
  { severity: 'ticket', suffix: 'Ticket', period: Duration.days(1), burnRate: 3, callsMin: 50 },
];

/** A weak objective has a budget that can't burn 14.4 times as fast. So this share of failures always triggers. */
const percentMax = 90;

/** In floating point 100 - 99.9 is not 0.1. */
const roundPercent = (percent: number): number => Number(percent.toFixed(6));

/** The percentage of calls that may miss the objective, and the percentage that triggers. */
function sharesOf(objectivePercent: number, { burnRate }: Window): { budget: number; trigger: number } {
  const budget = roundPercent(100 - objectivePercent);
  return { budget, trigger: Math.min(roundPercent(burnRate * budget), percentMax) };
}

/** @param dying functions whose crashed calls, which write no line, are added. The sweeper raises a ticket for each anyway */
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
  // These calls have no line either, because the load balancer had no server for them.
  if (service && severity === 'page') died['unanswered'] = service.unanswered(period);
  // Has 1 or 0 for each call that was not refused, because a flood of invalid keys would hide an outage.
  const calls = (statistic: string): IMetric =>
    createRelayMetric(relayName, 'CallFailed', statistic).with({ period });
  return {
    id: `Availability${suffix}`,
    severity,
    description: `At least ${trigger} of 100 calls fail, and ${availabilityPercent} % availability allows ${budget}. The dashboard shows on which channels, relay-ops channel list shows their state`,
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
 * Uses a percentile, because that is only one billed metric: if the 28th percentile is late, 72 of 100 answers are
 * late.
 */
function alarmOnFirstContent({ relayName, objectives }: AlarmParts, window: Window): AlarmRow {
  const { firstContentPercent = 95, firstContentSeconds = 10 } = objectives;
  const { severity, suffix, period } = window;
  const { budget, trigger } = sharesOf(firstContentPercent, window);
  const percentile = Stats.percentile(roundPercent(100 - trigger));
  return {
    id: `FirstContent${suffix}`,
    severity,
    description: `At least ${trigger} of 100 answers start after ${firstContentSeconds} s or later, and the objective allows ${budget}. The dashboard shows on which channels`,
    metric: createRelayMetric(relayName, 'FirstContentMs', percentile).with({ period }),
    threshold: firstContentSeconds * 1000,
    wantsManyValues: true,
  };
}

// The alarms that roll back a deployment: one for each shifted function, on its newest version only.

/** The number of calls from which a ratio is trusted. */
const callsMin = 50;
/** If a new version only failed, this many failures are enough, because it may get few calls. */
const onlyFailuresMin = 5;
const failurePercentMax = 10;
/** For a function without log lines to count. Uses runs that end in an error, by minute. */
const minutes = { looked: 5, bad: 3 };
/** For functions without callers: they may run only once a minute, and during a shift some of these runs use the old version. */
const badMinutesWithoutCallers = 2;

const nameNewVersionAlarm = (name: FunctionName): string => `${name}NewVersion`;

function alarmOnNewVersion({ relayName, functions }: AlarmParts, name: FunctionName): AlarmRow[] {
  const { live } = functions.get(name);
  if (live === undefined) return [];
  const shifted = { relayName, name, live };
  const errors = createVersionErrors(shifted);
  const common = {
    id: nameNewVersionAlarm(name),
    severity: 'ticket',
    description: `The newest version of function ${name} fails, so the deployment is rolled back. Its log group shows why`,
  } as const;
  if (!answersCalls(name))
    return [
      {
        ...common,
        // Lambda writes 1 for a run with an error, else 0. If it ever wrote nothing, this would count minutes with an error.
        metric: errors.with({ statistic: Stats.AVERAGE, period: Duration.minutes(1) }),
        threshold: failurePercentMax / 100,
        periods: minutes.looked,
        periodsMin: functionDescriptions[name].url ? minutes.bad : badMinutesWithoutCallers,
      },
    ];
  const metric = new MathExpression({
    expression: `IF(all >= ${callsMin}, 100 * bad / all, IF(bad >= ${onlyFailuresMin} AND bad >= all, 100, 0))`,
    // A call whose function crashes writes no line, so it is added.
    usingMetrics: {
      bad: sumOf({ failures: createVersionLines('VersionFailures', shifted), errors }),
      all: sumOf({ calls: createVersionLines('VersionCalls', shifted), errors }),
    },
    label: 'failures of the newest version in a hundred calls',
    period: fiveMinutes,
  });
  return [{ ...common, metric, threshold: failurePercentMax }];
}
