/** The stack of this repository: one relay, made from the options of a stage. */
import { CfnOutput, Stack, type StackProps } from 'aws-cdk-lib';
import type { Construct } from 'constructs';
import { EdgeAlarms } from './edge/edge-alarms.ts';
import { edgeRegion } from './edge/relay-edge.ts';
import { WebAcl } from './edge/web-acl.ts';
import type { StageOptions } from './options/option-table.ts';
import { publishedOptions, writeOutputs } from './options/published-options.ts';
import { valueOf } from './options/read-options.ts';
import { packageVersion, Relay } from './relay.ts';
import { relayProps, topicOf } from './relay-props.ts';

export interface RelayStackProps extends StackProps {
  stackName: string;
  options: StageOptions;
  /** The build's output: one folder per function. */
  bundlesFolder?: string | undefined;
  /** Of the ACL that another stack made for this one. */
  webAclArn?: string | undefined;
}

export class RelayStack extends Stack {
  readonly relay: Relay;
  /** What the next deployment and the stacks at the edge read. */
  readonly outputs: readonly CfnOutput[];
  /** Undefined: not asked for, or in a stack of its own. */
  readonly edgeAlarms?: EdgeAlarms;

  constructor(scope: Construct, { stackName, options, bundlesFolder, webAclArn, ...props }: RelayStackProps) {
    const { region } = options;
    const description = `OpenAI-compatible LLM relay ${packageVersion()}`;
    super(scope, stackName, {
      stackName,
      description,
      ...(region !== undefined && { env: { region } }),
      terminationProtection: !valueOf(options, 'disposable'),
      ...props,
    });
    const ownAclArn = webAclArn ?? webAclOf(this, stackName, options);
    // CDK leaves this id out of logical ids: those of stacks from before the construct stay as they are.
    this.relay = new Relay(this, 'Default', {
      name: stackName,
      ...relayProps(this, options),
      ...(ownAclArn !== undefined && { webAclArn: ownAclArn }),
      ...(bundlesFolder !== undefined && { bundlesFolder }),
    });
    const { distributionId } = this.relay.distribution;
    if (options.edgeAlarms && region === edgeRegion)
      this.edgeAlarms = new EdgeAlarms(this, 'EdgeAlarms', {
        distributionId,
        topic: topicOf(this, 'EdgeTopic', options.edgeAlarms) ?? this.relay.alarmTopic,
      });
    const published = writeOutputs(publishedOptions(options)).map(([name, value]) =>
      this.output(name, 'Options that differ from their defaults', value),
    );
    this.outputs = [...published, this.output('DistributionId', 'The distribution', distributionId)];
  }

  private output(name: string, description: string, value: string): CfnOutput {
    return new CfnOutput(this, name, { description, value });
  }
}

/** The ACL that is given, or one that is made where CloudFront's are. */
function webAclOf(stack: RelayStack, relayName: string, options: StageOptions): string | undefined {
  const { region, webAcl } = options;
  const requestsPerMinute = valueOf(options, 'webAclRequestsPerMinute');
  if (typeof webAcl === 'string') return webAcl;
  if (!webAcl || region !== edgeRegion) return undefined;
  return new WebAcl(stack, 'WebAcl', { relayName, region, requestsPerMinute }).arn;
}
