/** Reads a deployed stack from CloudFormation. Never repeats a request, never changes a stack. */
import type { DeployedStack } from '../../operate/operator-ports.ts';
import { callAws, buildQueryCall, readXmlText, type AwsCaller } from './aws-request.ts';
import { ServiceRefusal } from './aws-calls.ts';

export interface StackAddress extends AwsCaller {
  stack: string;
}

/** @returns undefined if the stack does not exist. Throws a ServiceRefusal, or the network's error. */
export async function describeStack(address: StackAddress): Promise<DeployedStack | undefined> {
  const xml = await queryStacks({ Action: 'DescribeStacks' }, address).catch((error: unknown) => {
    const isRefused = error instanceof ServiceRefusal && error.name === 'ValidationError';
    if (isRefused && error.message.includes('does not exist')) return undefined;
    throw error;
  });
  if (xml === undefined) return undefined;
  return {
    status: readXmlText(xml, 'StackStatus') ?? '',
    isProtected: readXmlText(xml, 'EnableTerminationProtection') === 'true',
    outputs: readOutputs(xml),
  };
}

export const queryStacks = (
  parameters: { Action: string } & Record<string, string>,
  { stack, ...caller }: StackAddress,
): Promise<string> =>
  callAws(
    caller,
    buildQueryCall('cloudformation', { ...parameters, StackName: stack, Version: '2010-05-15' }),
  );

const readOutputs = (xml: string): Map<string, string> =>
  new Map(
    xml.split('<member>').flatMap((member) => {
      const name = readXmlText(member, 'OutputKey');
      const value = readXmlText(member, 'OutputValue');
      return name === undefined || value === undefined ? [] : [[name, value] as const];
    }),
  );

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
