/**
 * The relay's alarms and the topic that they go to: a given one, or one that mails. Without either the alarms still exist,
 * for the console and other tools.
 */
import { Stack, Token } from 'aws-cdk-lib';
import { Alarm, ComparisonOperator, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import type { ITopic } from 'aws-cdk-lib/aws-sns';
import { EmailSubscription } from 'aws-cdk-lib/aws-sns-subscriptions';
import { Construct } from 'constructs';
import type { RelayFunctions } from '../constructs/relay-functions.ts';
import type { Triggers } from '../constructs/triggers.ts';
import type { AlarmDefinition, Severity } from './alarm-definition.ts';
import { functionAlarms } from './function-alarms.ts';
import { objectiveAlarms, type Objectives } from './objective-alarms.ts';
import { versionAlarms } from './version-alarms.ts';
import { alarmTopic } from './alarm-topic.ts';
import { canaryAlarm, relayAlarms } from './request-alarms.ts';

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
