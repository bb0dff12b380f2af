/**
 * Finds the base URL of a relay: locally that of the distribution's emulator, otherwise an output of the
 * deployed stack.
 */
import type { AwsCaller } from './aws-call.ts';
import { describeStack } from './described-stack.ts';

const defaultPort = '8787';

export interface StackAddress extends AwsCaller {
  stack: string;
  local: boolean;
}

/** @returns undefined when it cannot be read, e.g. without permission to describe stacks */
export async function findBaseUrl(address: StackAddress): Promise<string | undefined> {
  if (address.local) return `http://127.0.0.1:${address.environment['PORT'] ?? defaultPort}/v1`;
  const stack = await describeStack(address, address.stack).catch(() => undefined);
  const url = stack?.outputs.get('BaseUrl');
  return url?.startsWith('https://') ? url : undefined;
}
