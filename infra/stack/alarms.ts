/** What operators are told about. Alarms exist without an address too: the console and other tools see them. */
import { Duration, Stack } from 'aws-cdk-lib';
import { Alarm, ComparisonOperator, Metric, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import { PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Topic } from 'aws-cdk-lib/aws-sns';
import { EmailSubscription } from 'aws-cdk-lib/aws-sns-subscriptions';
import { Construct } from 'constructs';
import type { RelayFunctions } from './functions.ts';
import type { RelayFunction } from './relay-function.ts';

export interface AlarmsProps {
  functions: RelayFunctions;
  email?: string;
}

interface Watch {
  id: string;
  description: string;
  metric: Metric;
  /** The sum within five minutes that rings. */
  threshold: number;
}

const period = Duration.minutes(5);

export class Alarms extends Construct {
  readonly topic?: Topic;

  constructor(scope: Construct, id: string, props: AlarmsProps) {
    super(scope, id);
    if (props.email !== undefined) this.topic = this.alarmTopic(props.email);
    for (const [name, relayFunction] of props.functions.byName) {
      for (const watch of functionWatches(name, relayFunction)) this.addAlarm(watch);
    }
  }

  private addAlarm(watch: Watch): void {
    const alarm = new Alarm(this, watch.id, {
      alarmDescription: watch.description,
      metric: watch.metric,
      threshold: watch.threshold,
      comparisonOperator: ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      evaluationPeriods: 1,
      treatMissingData: TreatMissingData.NOT_BREACHING,
    });
    if (this.topic) alarm.addAlarmAction(new SnsAction(this.topic));
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

function functionWatches(name: string, relayFunction: RelayFunction): Watch[] {
  const { lambda } = relayFunction;
  const watches: Watch[] = [
    {
      id: `${name}Errors`,
      description: `Function ${name} crashed or timed out: its log group says why`,
      metric: lambda.metricErrors({ period, statistic: 'Sum' }),
      threshold: 1,
    },
    {
      id: `${name}Throttles`,
      description: `Function ${name} was refused an environment: the account's concurrency is used up`,
      metric: lambda.metricThrottles({ period, statistic: 'Sum' }),
      threshold: 1,
    },
  ];
  if (relayFunction.url === undefined) return watches;
  const serverErrors: Watch = {
    id: `${name}ServerErrors`,
    description: `Function ${name} answered with many 5xx: upstreams or tables cannot be reached`,
    metric: lambda.metric('Url5xxCount', { period, statistic: 'Sum' }),
    threshold: 20,
  };
  return [...watches, serverErrors];
}
