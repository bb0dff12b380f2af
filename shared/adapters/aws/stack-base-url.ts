/**
 * Finds the base URL of a relay: locally that of the distribution's emulator, otherwise an output of the
 * deployed stack.
 */
import type { AwsAccess } from '../system/environment.ts';
import { describeStack } from './describe-stack.ts';

const defaultPort = '8787';

export interface StackAddress {
  stack: string;
  local: boolean;
  environment: NodeJS.ProcessEnv;
  /** Throws when the environment has no region or no credentials. */
  aws(): Promise<AwsAccess>;
}

/** @returns undefined when it cannot be read, e.g. without permission to describe stacks */
export async function findBaseUrl(address: StackAddress): Promise<string | undefined> {
  if (address.local) return `http://127.0.0.1:${address.environment['PORT'] ?? defaultPort}/v1`;
  return baseUrlOf(address).catch(() => undefined);
}

async function baseUrlOf({ stack, environment, ...address }: StackAddress): Promise<string | undefined> {
  const deployed = await describeStack(stack, await address.aws(), environment);
  const url = deployed?.outputs.get('BaseUrl');
  return url?.startsWith('https://') ? url : undefined;
}
