/**
 * Resources in us-east-1 of a relay in another region, created on request. There are two stacks, because the
 * distribution needs the web ACL first and an alarm needs the distribution. Stacks of two regions meet through
 * `Fn::GetStackOutput`: no export, no custom resource, and CloudFormation reads the value when it deploys the
 * reader.
 */
import { CfnOutput, Stack, Token } from 'aws-cdk-lib';
import { Topic } from 'aws-cdk-lib/aws-sns';
import type { Construct } from 'constructs';
import { nameOnly, type PropRules } from '../options/prop-problems.ts';
import { refuseProps } from '../options/refuse-props.ts';
import { EdgeAlarms, WebAcl } from './web-acl.ts';

export const edgeRegion = 'us-east-1';

export interface RelayEdgeProps {
  relayName: string;
  /** The relay's region. */
  region: string;
}

/** Includes the relay's region, because relays of several regions have their edge stacks in one. */
const nameEdgeStack = ({ relayName, region }: RelayEdgeProps, part = 'edge'): string =>
  `${relayName}-${part}-${region}`;

/** Replaces CDK's `Fn.getStackOutput`, which older versions of CDK lack. */
const getStackOutput = (StackName: string, OutputName: string, Region: string): string =>
  Token.asString({ 'Fn::GetStackOutput': { StackName, Region, OutputName } });

const buildStackProps = (stackName: string, description: string) => ({
  stackName,
  description,
  env: { region: edgeRegion },
});

const propRules: PropRules = { relayName: nameOnly, region: 'region', requestsPerMinute: nameOnly };

export class RelayEdge extends Stack {
  /** An ARN that the relay's stack reads in its own region. */
  readonly webAclArn: string;

  constructor(scope: Construct, props: RelayEdgeProps & { requestsPerMinute: number }) {
    const name = nameEdgeStack(props);
    super(scope, name, buildStackProps(name, `The web ACL of ${props.relayName} in ${props.region}`));
    refuseProps(this, props, propRules, this.region);
    const { arn } = new WebAcl(this, 'WebAcl', props);
    void new CfnOutput(this, 'WebAclArn', { description: 'The web ACL of the distribution', value: arn });
    this.webAclArn = getStackOutput(name, 'WebAclArn', edgeRegion);
  }
}

export class RelayEdgeAlarms extends Stack {
  constructor(
    scope: Construct,
    props: RelayEdgeProps & {
      relayStackName: string;
      email?: string | undefined;
      topicArn?: string | undefined;
    },
  ) {
    const name = nameEdgeStack(props, 'edge-alarms');
    super(
      scope,
      name,
      buildStackProps(name, `Alarms on the distribution of ${props.relayName} in ${props.region}`),
    );
    const distributionId = getStackOutput(props.relayStackName, 'DistributionId', props.region);
    const topic =
      props.topicArn === undefined ? undefined : Topic.fromTopicArn(this, 'Topic', props.topicArn);
    void new EdgeAlarms(this, 'Alarms', { distributionId, email: props.email, topic });
  }
}
