/**
 * A web ACL with one rule: an address that sends too many requests gets a 429 from the edge, before any function runs and
 * any table is read. CloudFront takes ACLs of us-east-1 alone.
 */
import { Stack } from 'aws-cdk-lib';
import { CfnWebACL } from 'aws-cdk-lib/aws-wafv2';
import { Construct } from 'constructs';

export interface WebAclProps {
  /** Of the relay. The ACL's own name has the relay's region, as all ACLs of an account are in one place. */
  relayName: string;
  region: string;
  /** Requests of one address in a minute; more are refused until the rate falls. */
  requestsPerMinute: number;
}

const windowSeconds = 60;

/** What a client of the API gets for too many: the form of the relay's own errors. */
const refusal = {
  error: {
    message: `Too many requests from this address. Wait for ${windowSeconds} seconds.`,
    type: 'rate_limit_error',
    param: null,
    code: 'rate_limit_exceeded',
  },
};

const measured = (metricName: string): CfnWebACL.VisibilityConfigProperty => ({
  cloudWatchMetricsEnabled: true,
  // Samples hold headers of requests, and so keys.
  sampledRequestsEnabled: false,
  metricName,
});

export class WebAcl extends Construct {
  readonly arn: string;

  constructor(scope: Construct, id: string, props: WebAclProps) {
    super(scope, id);
    const { relayName, region, requestsPerMinute } = props;
    if (Stack.of(this).region !== 'us-east-1')
      throw new Error('a web ACL of CloudFront is made in us-east-1 alone: give RelayEdge a stack there');
    const acl = new CfnWebACL(this, 'Acl', {
      name: `${relayName}-${region}`,
      description: `Limits what one address can ask of ${relayName} in ${region}`,
      scope: 'CLOUDFRONT',
      defaultAction: { allow: {} },
      visibilityConfig: measured(`${relayName}-${region}`),
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
                responseHeaders: [{ name: 'retry-after', value: String(windowSeconds) }],
              },
            },
          },
          visibilityConfig: measured('TooManyOfOneAddress'),
        },
      ],
    });
    this.arn = acl.attrArn;
  }
}
