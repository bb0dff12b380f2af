/** Finds the base URL of a relay and the log groups of its calls: outputs of the deployed stack. */
import type { AwsAccess } from '../system/environment.ts';
import { describeStack } from './describe-stack.ts';

export interface StackAddress {
  stack: string;
  environment: NodeJS.ProcessEnv;
  /** Throws when the environment has no region or no credentials. */
  aws: () => Promise<AwsAccess>;
}

/** @returns undefined when it cannot be read, e.g. without permission to describe stacks */
export async function findBaseUrl(address: StackAddress): Promise<string | undefined> {
  return baseUrlOf(address).catch(() => undefined);
}

async function baseUrlOf({ stack, environment, ...address }: StackAddress): Promise<string | undefined> {
  const deployed = await describeStack(stack, await address.aws(), environment);
  const url = deployed?.outputs.get('BaseUrl');
  return url?.startsWith('https://') ? url : undefined;
}

/** Undefined: there is no such stack, or it is of a version that does not say. */
export async function findLogGroups({
  stack,
  environment,
  aws,
}: StackAddress): Promise<{ groups: string[] } | undefined> {
  const deployed = await describeStack(stack, await aws(), environment);
  const groups = deployed?.outputs.get('CallLogGroups')?.split(',');
  return groups && { groups };
}
