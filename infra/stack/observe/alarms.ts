/** What operators are told about. Alarms exist without an address too: the console and other tools see them. */
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
  configWatches,
  functionWatches,
  moneyWatches,
  streamWatches,
  type Watch,
} from './function-alarms.ts';
import { requestWatches, tableWatches } from './request-alarms.ts';

export interface AlarmsProps {
  stackName: string;
  functions: RelayFunctions;
  triggers: Triggers;
  email?: string;
}

export class Alarms extends Construct {
  readonly topic?: Topic;
  readonly all: Alarm[] = [];

  constructor(scope: Construct, id: string, props: AlarmsProps) {
    super(scope, id);
    if (props.email !== undefined) this.topic = this.alarmTopic(props.email);
    for (const [name, relayFunction] of props.functions.byName) {
      for (const watch of functionWatches(name, relayFunction)) this.addAlarm(watch);
      const mappings = props.triggers.mappings.filter((mapping) => mapping.function === name);
      for (const watch of streamWatches(name, relayFunction, mappings)) this.addAlarm(watch);
    }
    for (const watchesOf of [requestWatches, moneyWatches, configWatches, tableWatches])
      for (const watch of watchesOf(props.stackName)) this.addAlarm(watch);
  }

  private addAlarm(watch: Watch): void {
    const alarm = new Alarm(this, watch.id, {
      alarmDescription: watch.description,
      metric: watch.metric,
      threshold: watch.threshold,
      comparisonOperator:
        watch.rings === 'below'
          ? ComparisonOperator.LESS_THAN_THRESHOLD
          : ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      evaluationPeriods: watch.periods ?? 1,
      treatMissingData: missingData(watch),
    });
    if (this.topic) alarm.addAlarmAction(new SnsAction(this.topic));
    this.all.push(alarm);
  }

  private alarmTopic(email: string): Topic {
    const topic = new Topic(this, 'Topic', { enforceSSL: true });
    topic.addSubscription(new EmailSubscription(email));
    // A topic policy of its own replaces the one by which the account's alarms could publish.
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

function missingData({ rings, staysUntilMeasured }: Watch): TreatMissingData {
  if (rings === 'below') return TreatMissingData.BREACHING;
  return staysUntilMeasured ? TreatMissingData.IGNORE : TreatMissingData.NOT_BREACHING;
}
