/** Alarms on what CloudFront itself measures, which it does in us-east-1 alone. */
import { Duration, Stack } from 'aws-cdk-lib';
import { Alarm, ComparisonOperator, Metric, Stats, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import type { ITopic } from 'aws-cdk-lib/aws-sns';
import { EmailSubscription } from 'aws-cdk-lib/aws-sns-subscriptions';
import { Construct } from 'constructs';
import { alarmTopic } from '../observe/alarm-topic.ts';

export interface EdgeAlarmsProps {
  distributionId: string;
  /** Receives the alarm. Undefined, without a topic too: only the console shows it. */
  email?: string | undefined;
  /** A topic in us-east-1, in place of one for the address. */
  topic?: ITopic | undefined;
}

/** Percent of all answers: a failure of a function too, but also the edge that cannot reach it. */
const failurePercentMax = 5;

export class EdgeAlarms extends Construct {
  readonly serverErrors: Alarm;

  constructor(scope: Construct, id: string, { distributionId, email, topic }: EdgeAlarmsProps) {
    super(scope, id);
    if (Stack.of(this).region !== 'us-east-1')
      throw new Error('CloudFront measures in us-east-1 alone: give its alarms a stack there');
    this.serverErrors = new Alarm(this, 'ServerErrors', {
      alarmDescription: `Of a hundred answers at the edge ${failurePercentMax} or more are 5xx: compare with the alarms of the functions, the edge may not reach them`,
      metric: new Metric({
        namespace: 'AWS/CloudFront',
        metricName: '5xxErrorRate',
        dimensionsMap: { DistributionId: distributionId, Region: 'Global' },
        statistic: Stats.AVERAGE,
        period: Duration.minutes(5),
      }),
      threshold: failurePercentMax,
      comparisonOperator: ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      // One failure at night is a hundred percent.
      evaluationPeriods: 3,
      datapointsToAlarm: 2,
      treatMissingData: TreatMissingData.NOT_BREACHING,
    });
    const target = topic ?? (email === undefined ? undefined : this.mailTo(email));
    if (target) this.serverErrors.addAlarmAction(new SnsAction(target));
  }

  private mailTo(email: string): ITopic {
    const topic = alarmTopic(this, 'Topic');
    topic.addSubscription(new EmailSubscription(email));
    return topic;
  }
}
