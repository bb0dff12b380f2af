/** Reads with which options a stack was deployed. */
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { AwsAccess } from '../../shared/adapters/system/environment.ts';
import { describeStack, queryStacks } from '../../shared/adapters/aws/describe-stack.ts';
import { unreadable } from './unreadable-stack.ts';
import { readOutputs, type PublishedOptions } from '../stack/options/published-options.ts';

export interface Place {
  stackName: string;
  /** Of the file or of the command line. Undefined: that of the environment, as for CDK. */
  region: string | undefined;
  profile: string | undefined;
}

export type Deployed =
  | {
      region: string;
      state: 'absent';
      /** A first deployment that failed left a stack behind, which CDK cannot delete. */
      isProtected: boolean;
    }
  /** By a version that published no options. */
  | { region: string; state: 'unpublished' }
  | { region: string; state: 'published'; options: PublishedOptions };

/** States of a stack that never was up, or is gone: nothing of it can be lost. */
const neverUp = new Set([
  'REVIEW_IN_PROGRESS',
  'ROLLBACK_COMPLETE',
  'ROLLBACK_FAILED',
  'CREATE_FAILED',
  'DELETE_COMPLETE',
]);

/** Throws an Error that says what to do when the stack cannot be read. */
export async function readDeployed(place: Place, environment: NodeJS.ProcessEnv): Promise<Deployed> {
  const aws = await access(place, environment);
  const { region } = aws;
  const stack = await describeStack(place.stackName, aws, environment).catch((error: unknown) => {
    throw unreadable(error, `stack ${place.stackName} in ${region}`);
  });
  if (stack === undefined || neverUp.has(stack.status))
    return { region, state: 'absent', isProtected: stack?.isProtected ?? false };
  const options = optionsIn(stack.outputs, `stack ${place.stackName} in ${region}`);
  return options === undefined ? { region, state: 'unpublished' } : { region, state: 'published', options };
}

function optionsIn(outputs: ReadonlyMap<string, string>, what: string): PublishedOptions | undefined {
  try {
    return readOutputs(outputs);
  } catch (error) {
    throw new Error(
      `the options of ${what} cannot be compared: ${(error as Error).message}. Compare by hand, then run npx cdk deploy`,
      { cause: error },
    );
  }
}

/** Lets a stack be deleted. Throws an Error that says what to do when it cannot. */
export async function liftProtection(place: Place, environment: NodeJS.ProcessEnv): Promise<void> {
  const aws = await access(place, environment);
  const { stackName } = place;
  const parameters = {
    Action: 'UpdateTerminationProtection',
    StackName: stackName,
    EnableTerminationProtection: 'false',
  };
  await queryStacks(parameters, aws, environment).catch((error: unknown) => {
    const command = `aws cloudformation update-termination-protection --no-enable-termination-protection --stack-name ${stackName} --region ${aws.region}`;
    throw new Error(`it could not be lifted (${(error as Error).message}). Lift it with ${command}`, {
      cause: error,
    });
  });
}

/** The region as CDK chooses it, with the credentials of the profile or the environment. */
async function access({ region, profile }: Place, environment: NodeJS.ProcessEnv): Promise<AwsAccess> {
  const named = region ?? environment['AWS_REGION'] ?? environment['AWS_DEFAULT_REGION'];
  // The client is made for what it finds out, and sends nothing.
  const { config } = new DynamoDBClient({
    ...(named !== undefined && { region: named }),
    ...(profile !== undefined && { profile }),
  });
  const credentials = await config.credentials().catch((error: unknown) => {
    const reason = (error as Error).message;
    throw new Error(`no valid AWS credentials: set AWS_PROFILE, or run \`aws sso login\` (${reason})`, {
      cause: error,
    });
  });
  return { region: await config.region().catch(() => 'us-east-1'), credentials };
}
