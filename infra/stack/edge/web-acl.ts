/**
 * A web ACL with one rule: an address that sends too many requests gets a 429 from the edge, before any function runs and
 * any table is read. CloudFront takes ACLs of us-east-1 alone.
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
  /** Name of the relay. The ACL's own name has the relay's region, because all ACLs of an account are in one place. */
  relayName: string;
  region: string;
  /** Requests of one address in a minute; more are refused until the rate falls. */
  requestsPerMinute: number;
  /** For an API of the region. Default: for CloudFront. */
  regional?: boolean;
}

const windowSeconds = 60;

/** The answer to too many requests, in the form of the relay's errors. */
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
  // Samples hold headers of requests, and so keys.
  sampledRequestsEnabled: false,
  metricName,
});

export class WebAcl extends Construct {
  readonly arn: string;

  constructor(scope: Construct, id: string, props: WebAclProps) {
    super(scope, id);
    const { relayName, region, requestsPerMinute, regional = false } = props;
    if (!regional && Stack.of(this).region !== 'us-east-1')
      throw new Error('a web ACL of CloudFront is made in us-east-1 alone: give RelayEdge a stack there');
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
                // A page that may not read it would take it for a network that fails, and ask again.
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

// Alarms on what CloudFront itself measures, which it does in us-east-1 alone.

interface EdgeAlarmsProps {
  distributionId: string;
  /** Receives the alarm. Undefined, without a topic too: only the console shows it. */
  email?: string | undefined;
  /** A topic in us-east-1, in place of one for the address. */
  topic?: ITopic | undefined;
}

/** Percent of all answers: a failure of a function too, but also the edge that cannot reach it. */
const failurePercentMax = 5;

export class EdgeAlarms extends Construct {
  constructor(scope: Construct, id: string, { distributionId, email, topic }: EdgeAlarmsProps) {
    super(scope, id);
    if (Stack.of(this).region !== 'us-east-1')
      throw new Error('CloudFront measures in us-east-1 alone: give its alarms a stack there');
    const alarm = new Alarm(this, 'ServerErrors', {
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
    acknowledgeEdge(this);
    const own = topic === undefined && email !== undefined ? createAlarmTopic(this, 'Topic') : undefined;
    if (email !== undefined) own?.addSubscription(new EmailSubscription(email));
    const receiver = topic ?? own;
    if (receiver) alarm.addAlarmAction(new SnsAction(receiver));
  }
}
