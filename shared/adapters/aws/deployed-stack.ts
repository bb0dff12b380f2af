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
    if (!(error instanceof AwsRefusal)) throw error;
    if (error.name === 'ValidationError' && error.message.includes('does not exist')) return undefined;
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

// Finds the base URL of a relay and the log groups of its calls: outputs of the deployed stack.

interface StackAddress {
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
