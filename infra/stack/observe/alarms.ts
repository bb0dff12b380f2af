/**
 * The stack's alarms and the topic that mails them. Without a mail address the alarms still exist, for the
 * console and other tools.
 */
import { Stack } from 'aws-cdk-lib';
import { Alarm, ComparisonOperator, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import { PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Topic } from 'aws-cdk-lib/aws-sns';
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
import { requestAlarms, tableAlarms } from './request-alarms.ts';

export interface AlarmsProps {
  relayName: string;
  functions: RelayFunctions;
  triggers: Triggers;
  email?: string;
}

export class Alarms extends Construct {
  readonly topic?: Topic;
  readonly all: Alarm[];

  constructor(scope: Construct, id: string, props: AlarmsProps) {
    super(scope, id);
    if (props.email !== undefined) this.topic = this.alarmTopic(props.email);
    const ofFunctions = [...props.functions.byName].flatMap(([name, relayFunction]) => {
      const mappings = props.triggers.mappings.filter((mapping) => mapping.function === name);
      return functionAlarms(name, relayFunction).concat(streamAlarms(name, relayFunction, mappings));
    });
    const ofStack = [requestAlarms, moneyAlarms, configAlarms, tableAlarms].flatMap((alarmsOf) =>
      alarmsOf(props.relayName),
    );
    this.all = [...ofFunctions, ...ofStack].map((definition) => this.alarm(definition));
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

  private alarmTopic(email: string): Topic {
    const topic = new Topic(this, 'Topic', { enforceSSL: true });
    topic.addSubscription(new EmailSubscription(email));
    // A topic policy replaces SNS's default policy, under which the account's alarms may publish.
    topic.addToResourcePolicy(
      new PolicyStatement({
        principals: [new ServicePrincipal('cloudwatch.amazonaws.com')],
        actions: ['sns:Publish'],
        resources: [topic.topicArn],
        conditions: { StringEquals: { 'aws:SourceAccount': Stack.of(this).account } },
      }),
    );
    return topic;
  }
}

function missingData({ triggers, staysUntilMeasured }: AlarmDefinition): TreatMissingData {
  if (triggers === 'below') return TreatMissingData.BREACHING;
  return staysUntilMeasured ? TreatMissingData.IGNORE : TreatMissingData.NOT_BREACHING;
}
