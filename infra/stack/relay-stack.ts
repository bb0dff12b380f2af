/** The stack of this repository: one relay, made from the options of a deployment. */
import { Stack, type StackProps } from 'aws-cdk-lib';
import { Certificate } from 'aws-cdk-lib/aws-certificatemanager';
import type { Construct } from 'constructs';
import type { StackOptions } from './options/stack-options.ts';
import { packageVersion, Relay } from './relay.ts';

export interface RelayStackProps extends StackProps {
  options: StackOptions;
  /** The build's output: one folder per function. */
  bundlesFolder?: string;
}

export class RelayStack extends Stack {
  readonly relay: Relay;

  constructor(scope: Construct, { options, bundlesFolder, ...props }: RelayStackProps) {
    const { stackName, domain, ...others } = options;
    const description = `OpenAI-compatible LLM relay ${packageVersion()}`;
    super(scope, stackName, { stackName, description, ...props });
    // CDK leaves this id out of logical ids: those of stacks from before the construct stay as they are.
    this.relay = new Relay(this, 'Default', {
      name: stackName,
      ...others,
      ...(domain && {
        domain: {
          name: domain.name,
          certificate: Certificate.fromCertificateArn(this, 'Certificate', domain.certificateArn),
        },
      }),
      ...(bundlesFolder !== undefined && { bundlesFolder }),
    });
  }
}
