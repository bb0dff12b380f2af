/** Reads with which options a stack was deployed. */
import { awsAccessOf, openStore } from '../../shared/adapters/dynamodb/operator-client.ts';
import type { AwsAccess } from '../../shared/adapters/system/environment.ts';
import { describeStack, StackRefusal } from '../../shared/adapters/transport/describe-stack.ts';
import { readOutputs, type PublishedOptions } from '../stack/options/published-options.ts';

export interface Place {
  stackName: string;
  /** Of the file or of the command line. Undefined: that of the environment, as for CDK. */
  region: string | undefined;
  profile: string | undefined;
}

export type Deployed =
  | { region: string; state: 'absent' }
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
export async function readDeployed(
  { stackName, region, profile }: Place,
  environment: NodeJS.ProcessEnv,
): Promise<Deployed> {
  if (profile !== undefined) environment['AWS_PROFILE'] = profile;
  const aws = await access(region, environment);
  const stack = await describeStack(stackName, aws, environment).catch((error: unknown) => {
    throw explained(error, `stack ${stackName} in ${aws.region}`);
  });
  const place = { region: aws.region };
  if (stack === undefined || neverUp.has(stack.status)) return { ...place, state: 'absent' };
  const options = readOutputs(stack.outputs);
  return options === undefined
    ? { ...place, state: 'unpublished' }
    : { ...place, state: 'published', options };
}

/** The region as CDK chooses it, with the credentials of the profile or the environment. */
async function access(region: string | undefined, environment: NodeJS.ProcessEnv): Promise<AwsAccess> {
  const named = region ?? environment['AWS_REGION'] ?? environment['AWS_DEFAULT_REGION'];
  if (named !== undefined) environment['AWS_REGION'] = named;
  const target = { stack: 'relay', local: false };
  const store = await openStore(target, (error) => error as Error);
  environment['AWS_REGION'] ??= store.region ?? 'us-east-1';
  return awsAccessOf(
    store.region === undefined ? await openStore(target, (error) => error as Error) : store,
  ).catch((error: unknown) => {
    throw new Error(
      `no valid AWS credentials: set AWS_PROFILE, or run \`aws sso login\` (${(error as Error).message})`,
      {
        cause: error,
      },
    );
  });
}

function explained(error: unknown, what: string): Error {
  const cause = { cause: error };
  if (!(error instanceof StackRefusal)) {
    const { message, code } = ((error as Error).cause ?? error) as { message: string; code?: string };
    return new Error(`${what} could not be read: CloudFormation does not answer (${code ?? message})`, cause);
  }
  if (/AccessDenied|UnauthorizedOperation/.test(error.code))
    return new Error(
      `${what} could not be read: these credentials may not call cloudformation:DescribeStacks, without which a dropped option would not be noticed. ` +
        'Allow it, or compare by hand and run npx cdk deploy',
      cause,
    );
  return new Error(`${what} could not be read: ${error.code}: ${error.message}`, cause);
}
