/**
 * A web ACL with one rule: an address that sends too many requests gets a 429 from the edge, before a function runs or a
 * table is read. CloudFront accepts only ACLs in us-east-1.
 */
import { Stack, Duration } from 'aws-cdk-lib';
import { CfnWebACL } from 'aws-cdk-lib/aws-wafv2';
import { Construct } from 'constructs';
import { Alarm, ComparisonOperator, Metric, Stats, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import type { ITopic } from 'aws-cdk-lib/aws-sns';
import { EmailSubscription } from 'aws-cdk-lib/aws-sns-subscriptions';
import { acknowledgeEdge } from '../acknowledged-findings.ts';
import { createAlarmTopic } from '../observe/alarms.ts';

interface WebAclProps {
  /** Name of the relay. The ACL's name includes the relay's region, because all ACLs of an account share one region. */
  relayName: string;
  region: string;
  /** Requests a minute from one address. Further requests are refused until the rate falls. */
  requestsPerMinute: number;
  /** Create the ACL for a regional API instead of CloudFront. */
  regional?: boolean;
}

const windowSeconds = 60;

/** The body of the 429, in the form of the relay's errors. */
const refusal = {
  error: {
    message: `Too many requests from this address. Wait for ${windowSeconds} seconds.`,
    type: 'rate_limit_error',
    param: null,
    code: 'rate_limit_exceeded',
  },
};

const configureVisibility = (metricName: string): CfnWebACL.VisibilityConfigProperty => ({
  cloudWatchMetricsEnabled: true,
  // Samples would store request headers, which hold keys.
  sampledRequestsEnabled: false,
  metricName,
});

export class WebAcl extends Construct {
  readonly arn: string;

  constructor(scope: Construct, id: string, props: WebAclProps) {
    super(scope, id);
    const { relayName, region, requestsPerMinute, regional = false } = props;
    if (!regional && Stack.of(this).region !== 'us-east-1')
      throw new Error('CloudFront uses web ACLs of us-east-1 only: create RelayEdge in a stack there');
    const acl = new CfnWebACL(this, 'Acl', {
      name: `${relayName}-${region}`,
      description: `Limits what one address can ask of ${relayName} in ${region}`,
      scope: regional ? 'REGIONAL' : 'CLOUDFRONT',
      defaultAction: { allow: {} },
      visibilityConfig: configureVisibility(`${relayName}-${region}`),
      customResponseBodies: {
        tooMany: { contentType: 'APPLICATION_JSON', content: JSON.stringify(refusal) },
      },
      rules: [
        {
          name: 'TooManyOfOneAddress',
          priority: 0,
          statement: {
            rateBasedStatement: {
              aggregateKeyType: 'IP',
              limit: requestsPerMinute,
              evaluationWindowSec: windowSeconds,
            },
          },
          action: {
            block: {
              customResponse: {
                responseCode: 429,
                customResponseBodyKey: 'tooMany',
                // Without CORS headers a browser reports a network failure, and its SDK retries.
                responseHeaders: [
                  { name: 'retry-after', value: String(windowSeconds) },
                  { name: 'access-control-allow-origin', value: '*' },
                  { name: 'access-control-expose-headers', value: 'retry-after' },
                ],
              },
            },
          },
          visibilityConfig: configureVisibility('TooManyOfOneAddress'),
        },
      ],
    });
    this.arn = acl.attrArn;
    acknowledgeEdge(this);
  }
}

// Alarms on CloudFront's own metrics, which exist only in us-east-1.

interface EdgeAlarmsProps {
  distributionId: string;
  /** Address that gets the alarm by mail. Without an address and a topic, only the console shows it. */
  email?: string | undefined;
  /** A topic in us-east-1. Replaces the one for the address. */
  topic?: ITopic | undefined;
}

/** Percent of all answers. Counts failures of a function, and of the edge that can't reach one. */
const failurePercentMax = 5;

export class EdgeAlarms extends Construct {
  constructor(scope: Construct, id: string, { distributionId, email, topic }: EdgeAlarmsProps) {
    super(scope, id);
    if (Stack.of(this).region !== 'us-east-1')
      throw new Error('CloudFront writes metrics in us-east-1 only: create its alarms in a stack there');
    const alarm = new Alarm(this, 'ServerErrors', {
      alarmDescription: `${failurePercentMax} or more of 100 answers of CloudFront are 5xx. Compare with the alarms of the functions: CloudFront may not reach them`,
      metric: new Metric({
        namespace: 'AWS/CloudFront',
        metricName: '5xxErrorRate',
        dimensionsMap: { DistributionId: distributionId, Region: 'Global' },
        statistic: Stats.AVERAGE,
        period: Duration.minutes(5),
      }),
      threshold: failurePercentMax,
      comparisonOperator: ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      // At night a single failure may be 100 %.
      evaluationPeriods: 3,
      datapointsToAlarm: 2,
      treatMissingData: TreatMissingData.NOT_BREACHING,
    });
    const own = topic === undefined && email !== undefined ? createAlarmTopic(this, 'Topic') : undefined;
    if (email !== undefined) own?.addSubscription(new EmailSubscription(email));
    const receiver = topic ?? own;
    if (receiver) alarm.addAlarmAction(new SnsAction(receiver));
    acknowledgeEdge(this);
  }
}
