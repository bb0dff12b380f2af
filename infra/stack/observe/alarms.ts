/**
 * The relay's alarms and the topic that they go to: a given one, or one that mails. Without either the alarms still exist,
 * for the console and other tools.
 */
import { Stack, Token, Duration } from 'aws-cdk-lib';
import {
  Alarm,
  ComparisonOperator,
  TreatMissingData,
  MathExpression,
  Stats,
  type IMetric,
} from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import type { ITopic } from 'aws-cdk-lib/aws-sns';
import { EmailSubscription } from 'aws-cdk-lib/aws-sns-subscriptions';
import { Construct } from 'constructs';
import type { RelayFunctions } from '../constructs/relay-functions.ts';
import type { Triggers } from '../constructs/triggers.ts';
import {
  type AlarmDefinition,
  type Severity,
  functionAlarms,
  alarmTopic,
  canaryAlarm,
  relayAlarms,
  answering,
} from './alarm-definitions.ts';
import { relayMetric, versionMetrics, type VersionMetrics } from './relay-metric.ts';
import type { FunctionName } from '../constructs/function-descriptions.ts';

export interface AlarmsProps {
  relayName: string;
  functions: RelayFunctions;
  triggers: Triggers;
  email?: string | undefined;
  /** Its policy lets CloudWatch publish. Absent: one is made when there is an address. */
  topic?: ITopic | undefined;
  /** Receives pages alone. Absent: they go where tickets go. */
  pageEmail?: string | undefined;
  objectives: Objectives;
  /** New versions are watched while they get traffic step by step. */
  shifting: boolean;
  /** There is a scheduled call. */
  canary: boolean;
  /** False: there is a topic for notices, but no alarm. */
  on: boolean;
}

export class Alarms extends Construct {
  readonly topic?: ITopic;
  readonly all: Alarm[] = [];
  readonly #pageTopic?: ITopic;
  readonly #byId = new Map<string, Alarm>();

  constructor(scope: Construct, id: string, props: AlarmsProps) {
    super(scope, id);
    const { relayName, functions, triggers, objectives, pageEmail } = props;
    const topic = props.topic ?? (props.email === undefined ? undefined : alarmTopic(this, 'Topic'));
    if (topic) this.topic = this.usable(topic);
    if (props.email !== undefined) topic?.addSubscription(new EmailSubscription(props.email));
    if (pageEmail !== undefined) {
      this.#pageTopic = alarmTopic(this, 'PageTopic');
      this.#pageTopic.addSubscription(new EmailSubscription(pageEmail));
    }
    if (!props.on) return;
    const definitions = [
      ...objectiveAlarms({ relayName, functions, objectives }),
      ...relayAlarms(relayName, triggers.mappings),
      ...functionAlarms(functions),
      ...(props.canary ? [canaryAlarm(relayName)] : []),
      ...(props.shifting ? versionAlarms(relayName, functions) : []),
    ];
    for (const definition of definitions) this.add(definition);
  }

  get(id: string): Alarm {
    const found = this.#byId.get(id);
    if (found === undefined) throw new Error(`no alarm ${id}`);
    return found;
  }

  private add(definition: AlarmDefinition): void {
    const alarm = new Alarm(this, definition.id, {
      alarmDescription: `[${definition.severity}] ${definition.description}`,
      metric: definition.metric,
      threshold: definition.threshold,
      comparisonOperator:
        definition.triggers === 'below'
          ? ComparisonOperator.LESS_THAN_THRESHOLD
          : ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      evaluationPeriods: definition.periods ?? 1,
      ...(definition.periodsMin !== undefined && { datapointsToAlarm: definition.periodsMin }),
      ...(definition.wantsManyValues && { evaluateLowSampleCountPercentile: 'ignore' }),
      treatMissingData:
        definition.triggers === 'below' || definition.missingTriggers
          ? TreatMissingData.BREACHING
          : TreatMissingData.NOT_BREACHING,
    });
    const topic = this.topicOf(definition.severity);
    if (topic) alarm.addAlarmAction(new SnsAction(topic));
    this.#byId.set(definition.id, alarm);
    this.all.push(alarm);
  }

  private topicOf(severity: Severity): ITopic | undefined {
    return (severity === 'page' ? this.#pageTopic : undefined) ?? this.topic;
  }

  /** Alarms stay silent, without an error, where their topic is in another region or keeps an order. */
  private usable(topic: ITopic): ITopic {
    const [here, there] = [Stack.of(this).region, topic.env.region];
    const isElsewhere = here !== there && !Token.isUnresolved(here) && !Token.isUnresolved(there);
    if (isElsewhere || topic.fifo)
      throw new Error(`alarmTopic: alarms in ${here} need a standard topic there, not ${topic.topicArn}`);
    return topic;
  }
}

// Alarms on how fast the error budget of an objective burns. A burn rate of 1 spends the budget in exactly 30 days; one
// alarm looks for outages that spend it in two days, the other for faults that spend it in ten.

export interface Objectives {
  /** Of a hundred calls, how many must not fail. Default: 99.5. */
  availabilityPercent?: number;
  /** Of a hundred answers, how many must begin in time. Default: 95. */
  firstContentPercent?: number;
  /** What "in time" is, in seconds from the arrival of the call to the first content. Default: 10. */
  firstContentSeconds?: number;
}

interface ObjectiveParts {
  relayName: string;
  functions: RelayFunctions;
  objectives: Objectives;
}

interface Window {
  severity: Severity;
  window: Duration;
  burnRate: number;
  /** With fewer calls a ratio says nothing: one failure in two calls is not an outage. */
  callsMin: number;
}

const windows: Window[] = [
  { severity: 'page', window: Duration.hours(1), burnRate: 14.4, callsMin: 20 },
  { severity: 'ticket', window: Duration.days(1), burnRate: 3, callsMin: 50 },
];

/** A weak objective allows so much that its budget cannot burn 14.4 times as fast: this share triggers in any case. */
const percentMax = 90;

function objectiveAlarms(parts: ObjectiveParts): AlarmDefinition[] {
  return windows.flatMap((window) => [availability(parts, window), firstContent(parts, window)]);
}

const suffix = ({ severity }: Window): string => (severity === 'page' ? 'Page' : 'Ticket');

/** 100 - 99.9 is not 0.1. */
const rounded = (percent: number): number => Number(percent.toFixed(6));

/** Percent of calls that may not be as the objective wants them, and percent that triggers. */
function sharesOf(objectivePercent: number, { burnRate }: Window): { budget: number; trigger: number } {
  const budget = rounded(100 - objectivePercent);
  return { budget, trigger: Math.min(rounded(burnRate * budget), percentMax) };
}

function availability({ relayName, functions, objectives }: ObjectiveParts, of: Window): AlarmDefinition {
  const { availabilityPercent = 99.5 } = objectives;
  const { severity, window, callsMin } = of;
  const { budget, trigger } = sharesOf(availabilityPercent, of);
  // A call whose function dies writes no line. Each such call makes a ticket anyway, when the sweeper closes it.
  const dying = severity === 'page' ? answering(functions) : [];
  const died = Object.fromEntries(
    dying.map((name) => [
      `${name}Died`,
      functions.get(name).lambda.metricErrors({ period: window, statistic: Stats.SUM }),
    ]),
  );
  // 1 or 0 for each call that was not refused: a flood of wrong keys would hide an outage.
  const calls = (statistic: string): IMetric =>
    relayMetric(relayName, 'CallFailed', statistic).with({ period: window });
  // A metric without any value is left out of a SUM.
  const withDied = (id: string, metric: IMetric): IMetric =>
    new MathExpression({
      expression: `SUM([${[id, ...Object.keys(died)].map((each) => `FILL(${each}, 0)`).join(', ')}])`,
      usingMetrics: { [id]: metric, ...died },
      period: window,
    });
  return {
    id: `Availability${suffix(of)}`,
    severity,
    description: `Of a hundred calls ${trigger} fail, and ${availabilityPercent} % availability allows ${budget}: the dashboard says on which channels, ops channel list how they are`,
    metric: new MathExpression({
      expression: `IF(calls >= ${callsMin}, 100 * bad / calls, 0)`,
      usingMetrics: {
        calls: withDied('answered', calls(Stats.SAMPLE_COUNT)),
        bad: withDied('failed', calls(Stats.SUM)),
      },
      label: 'failures in a hundred calls',
      period: window,
    }),
    threshold: trigger,
  };
}

/**
 * By a percentile, which is one metric to pay for: that 72 of 100 answers are late and that the 28th percentile is late
 * are the same.
 */
function firstContent({ relayName, objectives }: ObjectiveParts, of: Window): AlarmDefinition {
  const { firstContentPercent = 95, firstContentSeconds = 10 } = objectives;
  const { severity, window } = of;
  const { budget, trigger } = sharesOf(firstContentPercent, of);
  const percentile = rounded(100 - trigger);
  return {
    id: `FirstContent${suffix(of)}`,
    severity,
    description: `Of a hundred answers ${trigger} begin after ${firstContentSeconds} s or later, and the objective allows ${budget}: the dashboard says on which channels`,
    metric: relayMetric(relayName, 'FirstContentMs', Stats.percentile(percentile)).with({ period: window }),
    threshold: firstContentSeconds * 1000,
    wantsManyValues: true,
  };
}

// Alarm definitions that give up a deployment: one for each function with a URL, on its newest version alone.

const period = Duration.minutes(5);
/** From so many calls on a ratio is trusted. */
const callsMin = 50;
/** So many failures are enough where nothing but failures was seen: a new version may get few calls. */
const onlyFailuresMin = 5;
const failurePercentMax = 10;

export const versionAlarmId = (name: FunctionName): string => `${name}NewVersion`;

/** Of a function that writes no line for CloudWatch to count: runs that end in an error, minute by minute. */
const minutes = { looked: 5, bad: 3 };

function versionAlarms(relayName: string, functions: RelayFunctions): AlarmDefinition[] {
  const alarms = [];
  for (const [name, { live }] of functions.byName)
    if (live !== undefined) alarms.push(versionAlarm(name, versionMetrics({ relayName, name, live })));
  return alarms;
}

function versionAlarm(name: FunctionName, { errors, calls, failures }: VersionMetrics): AlarmDefinition {
  const common = {
    id: versionAlarmId(name),
    severity: 'ticket',
    description: `The newest version of function ${name} fails, and the deployment is rolled back: its log group says why`,
  } as const;
  if (calls && failures) {
    const metric = failurePercent({ errors, calls, failures });
    return { ...common, metric, threshold: failurePercentMax };
  }
  return {
    ...common,
    // Lambda says 1 for a run with an error, else 0. Were it to say nothing then, these were the minutes with an error.
    metric: errors.with({ statistic: Stats.AVERAGE, period: Duration.minutes(1) }),
    threshold: failurePercentMax / 100,
    periods: minutes.looked,
    periodsMin: minutes.bad,
  };
}

function failurePercent({ errors, calls, failures }: Required<VersionMetrics>): IMetric {
  const sum = (usingMetrics: Record<string, IMetric>): IMetric =>
    new MathExpression({
      expression: `SUM([${Object.keys(usingMetrics)
        .map((id) => `FILL(${id}, 0)`)
        .join(', ')}])`,
      usingMetrics,
      period,
    });
  return new MathExpression({
    expression: `IF(all >= ${callsMin}, 100 * bad / all, IF(bad >= ${onlyFailuresMin} AND bad >= all, 100, 0))`,
    usingMetrics: {
      bad: sum({ failures, errors }),
      // A call whose function dies writes no line, so it is added.
      all: sum({ calls, errors }),
    },
    label: 'failures of the newest version in a hundred calls',
    period,
  });
}
