/** Reads a deployed stack from CloudFormation. Never changes a stack. */
import { CloudFormationClient, DescribeStacksCommand } from '@aws-sdk/client-cloudformation';
import type { DeployedStack } from '../../operate/operator-ports.ts';
import { composeClientSettings, type AwsCaller } from './client-settings.ts';

export interface StackAddress extends AwsCaller {
  stack: string;
}

/** @returns undefined if the stack does not exist */
export async function describeStack({ stack, ...caller }: StackAddress): Promise<DeployedStack | undefined> {
  const client = new CloudFormationClient(composeClientSettings(caller, 'CLOUDFORMATION'));
  const { Stacks: [found] = [] } = await client
    .send(new DescribeStacksCommand({ StackName: stack }))
    .catch((error: unknown) => {
      const isMissing = error instanceof Error && error.name === 'ValidationError';
      if (isMissing && error.message.includes('does not exist')) return { Stacks: [] };
      throw error;
    });
  return (
    found && {
      status: found.StackStatus ?? '',
      isProtected: found.EnableTerminationProtection ?? false,
      outputs: new Map(
        found.Outputs?.map(({ OutputKey = '', OutputValue = '' }) => [OutputKey, OutputValue]),
      ),
    }
  );
}

/** Returns undefined without permission to describe stacks, too. */
export async function findBaseUrl(address: StackAddress): Promise<string | undefined> {
  const url = await describeStack(address).then(
    (found) => found?.outputs.get('BaseUrl'),
    () => undefined,
  );
  return url?.startsWith('https://') ? url : undefined;
}

export async function findLogGroups(address: StackAddress): Promise<{ groups: string[] } | undefined> {
  const groups = (await describeStack(address))?.outputs.get('CallLogGroups')?.split(',');
  return groups && { groups };
}
