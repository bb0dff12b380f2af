/** The stack of this repository: one relay, made from the options of a stage. */
import { CfnOutput, Stack, type StackProps } from 'aws-cdk-lib';
import { Certificate } from 'aws-cdk-lib/aws-certificatemanager';
import type { Construct } from 'constructs';
import { modelArns } from './options/bedrock-models.ts';
import type { StageOptions } from './options/option-table.ts';
import { publishedOptions, writeOutputs } from './options/published-options.ts';
import { packageVersion, Relay, type RelayDomain } from './relay.ts';

export interface RelayStackProps extends StackProps {
  stackName: string;
  options: StageOptions;
  /** The build's output: one folder per function. */
  bundlesFolder?: string;
}

export class RelayStack extends Stack {
  readonly relay: Relay;
  /** The options that the next deployment is compared with. */
  readonly published: readonly CfnOutput[];

  constructor(scope: Construct, { stackName, options, bundlesFolder, ...props }: RelayStackProps) {
    const description = `OpenAI-compatible LLM relay ${packageVersion()}`;
    const { region, bedrockModels, domain: _domain, certificateArn: _certificateArn, ...others } = options;
    super(scope, stackName, {
      stackName,
      description,
      ...(region !== undefined && { env: { region } }),
      ...props,
    });
    const domain = domainOf(this, options);
    // CDK leaves this id out of logical ids: those of stacks from before the construct stay as they are.
    this.relay = new Relay(this, 'Default', {
      name: stackName,
      ...others,
      ...(domain && { domain }),
      ...(bedrockModels && { bedrockModels: modelArns(bedrockModels) }),
      ...(bundlesFolder !== undefined && { bundlesFolder }),
    });
    const about = 'Options that differ from their defaults';
    this.published = writeOutputs(publishedOptions(options)).map(
      ([name, value]) => new CfnOutput(this, name, { description: about, value }),
    );
  }
}

function domainOf(stack: Stack, { domain: name, certificateArn }: StageOptions): RelayDomain | undefined {
  if (name === undefined || certificateArn === undefined) return undefined;
  return { name, certificate: Certificate.fromCertificateArn(stack, 'Certificate', certificateArn) };
}
