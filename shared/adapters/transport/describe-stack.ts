/** Reads the state and the outputs of a deployed stack. Never changes one. */
import type { AwsAccess } from '../system/environment.ts';
import { queryStacks, StackRefusal } from './stack-query.ts';
import { textOf } from './xml-text.ts';

export interface DeployedStack {
  /** As CloudFormation calls it: `CREATE_COMPLETE`. */
  status: string;
  /** It cannot be deleted. */
  isProtected: boolean;
  outputs: ReadonlyMap<string, string>;
}

/** @returns undefined when there is no such stack. Throws a StackRefusal, or the error of the network. */
export async function describeStack(
  stack: string,
  aws: AwsAccess,
  environment: NodeJS.ProcessEnv,
): Promise<DeployedStack | undefined> {
  const parameters = { Action: 'DescribeStacks', StackName: stack };
  const xml = await queryStacks(parameters, aws, environment).catch((error: unknown) => {
    if (!(error instanceof StackRefusal)) throw error;
    if (error.code === 'ValidationError' && error.message.includes('does not exist')) return undefined;
    throw error;
  });
  if (xml === undefined) return undefined;
  return {
    status: textOf(xml, 'StackStatus') ?? '',
    isProtected: textOf(xml, 'EnableTerminationProtection') === 'true',
    outputs: outputsIn(xml),
  };
}

/** The outputs of the one stack that was asked for. */
const outputsIn = (xml: string): Map<string, string> =>
  new Map(
    xml.split('<member>').flatMap((member) => {
      const name = textOf(member, 'OutputKey');
      const value = textOf(member, 'OutputValue');
      return name === undefined || value === undefined ? [] : [[name, value] as const];
    }),
  );
