/** Asks CloudFormation about a deployed stack. Never repeats a request, and never changes a stack by itself. */
import { AwsRefusal, callAws, queryCall, xmlTextOf } from './aws-request.ts';
import type { AwsAccess } from '../system/environment.ts';

interface DeployedStack {
  /** As CloudFormation calls it: `CREATE_COMPLETE`. */
  status: string;
  /** It cannot be deleted. */
  isProtected: boolean;
  outputs: ReadonlyMap<string, string>;
}

/** @returns undefined when there is no such stack. Throws an AwsRefusal, or the error of the network. */
export async function describeStack(
  stack: string,
  aws: AwsAccess,
  environment: NodeJS.ProcessEnv,
): Promise<DeployedStack | undefined> {
  const parameters = { Action: 'DescribeStacks', StackName: stack };
  const xml = await queryStacks(parameters, aws, environment).catch((error: unknown) => {
    const isRefused = error instanceof AwsRefusal && error.name === 'ValidationError';
    if (isRefused && error.message.includes('does not exist')) return undefined;
    throw error;
  });
  if (xml === undefined) return undefined;
  return {
    status: xmlTextOf(xml, 'StackStatus') ?? '',
    isProtected: xmlTextOf(xml, 'EnableTerminationProtection') === 'true',
    outputs: outputsIn(xml),
  };
}

/**
 * @param parameters with the `Action`
 * @returns the answer's XML. Throws an AwsRefusal, or the error of the network.
 */
export const queryStacks = (
  parameters: Record<string, string>,
  aws: AwsAccess,
  environment: NodeJS.ProcessEnv,
): Promise<string> =>
  callAws(
    { aws: async () => aws, environment },
    queryCall('cloudformation', { ...parameters, Version: '2010-05-15' }),
  );

/** The outputs of the one stack that was asked for. */
const outputsIn = (xml: string): Map<string, string> =>
  new Map(
    xml.split('<member>').flatMap((member) => {
      const name = xmlTextOf(member, 'OutputKey');
      const value = xmlTextOf(member, 'OutputValue');
      return name === undefined || value === undefined ? [] : [[name, value] as const];
    }),
  );

interface StackAddress {
  stack: string;
  environment: NodeJS.ProcessEnv;
  /** Throws when the environment has no region or no credentials. */
  aws: () => Promise<AwsAccess>;
}

const outputOf = async ({ stack, environment, aws }: StackAddress, name: string) =>
  (await describeStack(stack, await aws(), environment))?.outputs.get(name);

/** The base URL of a relay. Undefined: it cannot be read, e.g. without permission to describe stacks. */
export async function findBaseUrl(address: StackAddress): Promise<string | undefined> {
  const url = await outputOf(address, 'BaseUrl').catch(() => undefined);
  return url?.startsWith('https://') ? url : undefined;
}

/** The log groups of a relay's calls. Undefined: there is no such stack. */
export async function findLogGroups(address: StackAddress): Promise<{ groups: string[] } | undefined> {
  const groups = (await outputOf(address, 'CallLogGroups'))?.split(',');
  return groups && { groups };
}
