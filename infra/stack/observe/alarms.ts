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
import {
  configAlarms,
  functionAlarms,
  moneyAlarms,
  streamAlarms,
  type AlarmDefinition,
} from './function-alarms.ts';
import { alarmTopic } from './alarm-topic.ts';
import { requestAlarms, tableAlarms } from './request-alarms.ts';

export interface AlarmsProps {
  relayName: string;
  functions: RelayFunctions;
  triggers: Triggers;
  email?: string | undefined;
  /** Its policy lets CloudWatch publish. Absent: one is made when there is an address. */
  topic?: ITopic | undefined;
  /** False: there is a topic for notices, but no alarm. */
  on: boolean;
}

export class Alarms extends Construct {
  readonly topic?: ITopic;
  readonly all: Alarm[];

  constructor(scope: Construct, id: string, props: AlarmsProps) {
    super(scope, id);
    const topic = props.topic ?? (props.email === undefined ? undefined : alarmTopic(this, 'Topic'));
    if (topic) this.topic = this.usable(topic);
    if (props.email !== undefined) topic?.addSubscription(new EmailSubscription(props.email));
    const ofFunctions = [...props.functions.byName].flatMap(([name, relayFunction]) => {
      const mappings = props.triggers.mappings.filter((mapping) => mapping.function === name);
      return functionAlarms(name, relayFunction).concat(streamAlarms(name, relayFunction, mappings));
    });
    const ofStack = [requestAlarms, moneyAlarms, configAlarms, tableAlarms].flatMap((alarmsOf) =>
      alarmsOf(props.relayName),
    );
    const definitions = props.on ? [...ofFunctions, ...ofStack] : [];
    this.all = definitions.map((definition) => this.alarm(definition));
  }

  private alarm(definition: AlarmDefinition): Alarm {
    const alarm = new Alarm(this, definition.id, {
      alarmDescription: definition.description,
      metric: definition.metric,
      threshold: definition.threshold,
      comparisonOperator:
        definition.triggers === 'below'
          ? ComparisonOperator.LESS_THAN_THRESHOLD
          : ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      evaluationPeriods: definition.periods ?? 1,
      treatMissingData: missingData(definition),
    });
    if (this.topic) alarm.addAlarmAction(new SnsAction(this.topic));
    return alarm;
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

function missingData({ triggers, staysUntilMeasured }: AlarmDefinition): TreatMissingData {
  if (triggers === 'below') return TreatMissingData.BREACHING;
  return staysUntilMeasured ? TreatMissingData.IGNORE : TreatMissingData.NOT_BREACHING;
}
