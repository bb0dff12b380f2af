/** Reads with which options a stack was deployed. */
import { isDeepStrictEqual } from 'node:util';
import {
  CloudFormationClient,
  CloudFormationServiceException,
  UpdateTerminationProtectionCommand,
} from '@aws-sdk/client-cloudformation';
import { composeClientSettings } from '../../shared/adapters/aws/client-settings.ts';
import { describeStack, type StackAddress } from '../../shared/adapters/aws/deployed-stack.ts';
import {
  readOutputs,
  type PublishedOptions,
  selectWrittenOptions,
} from '../stack/options/published-options.ts';
import { BedrockModels, listModelArns } from '../stack/options/bedrock-models.ts';
import { findOption, type StageOptions } from '../stack/options/option-table.ts';

interface Place {
  stackName: string;
  /** From the file or the command line; by default from the environment, as in CDK. */
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
  const { region, ...address } = await openAddress(place, environment);
  const stackLabel = `stack ${place.stackName} in ${region}`;
  const stack = await describeStack(address).catch((error: unknown) => {
    throw wrapReadError(error, stackLabel);
  });
  if (stack === undefined || neverUp.has(stack.status))
    return { region, state: 'absent', isProtected: stack?.isProtected ?? false };
  // Until a deployment ends, the outputs list the options before it, so a dropped option would go unnoticed.
  if (stack.status.endsWith('_IN_PROGRESS'))
    throw new Error(`${stackLabel} is ${stack.status}: wait until it finishes, then repeat this command`);
  return { region, state: 'published', options: readDeployedOptions(stack.outputs, stackLabel) };
}

function readDeployedOptions(outputs: ReadonlyMap<string, string>, stackLabel: string): PublishedOptions {
  try {
    const options = readOutputs(outputs);
    if (options === undefined) throw new Error('it has no output Options');
    return options;
  } catch (error) {
    throw new Error(
      `cannot compare the options of ${stackLabel}: ${(error as Error).message}. Compare them by hand, then run npx cdk deploy`,
      { cause: error },
    );
  }
}

/** Lets a stack be deleted. Throws an Error that says what to do when it cannot. */
export async function liftProtection(place: Place, environment: NodeJS.ProcessEnv): Promise<void> {
  const { region, stack, ...caller } = await openAddress(place, environment);
  const client = new CloudFormationClient(composeClientSettings(caller, 'CLOUDFORMATION'));
  const command = new UpdateTerminationProtectionCommand({
    StackName: stack,
    EnableTerminationProtection: false,
  });
  await client.send(command).catch((error: unknown) => {
    const advice = `aws cloudformation update-termination-protection --no-enable-termination-protection --stack-name ${stack} --region ${region}`;
    throw new Error(
      `cannot remove the termination protection (${(error as Error).message}). Remove it with ${advice}`,
      { cause: error },
    );
  });
}

/** The region as CDK chooses it, with the credentials of the profile or the environment. */
export async function openAddress(
  { region: given, profile, stackName: stack }: Place,
  environment: NodeJS.ProcessEnv,
): Promise<StackAddress & { region: string }> {
  const named = given ?? environment['AWS_REGION'] ?? environment['AWS_DEFAULT_REGION'];
  // The client only finds the region and the credentials, and sends nothing.
  const { config } = new CloudFormationClient({
    ...(named !== undefined && { region: named }),
    ...(profile !== undefined && { profile }),
  });
  const credentials = await config.credentials().catch((error: unknown) => {
    const reason = (error as Error).message;
    throw new Error(`no valid AWS credentials: set AWS_PROFILE, or run \`aws sso login\` (${reason})`, {
      cause: error,
    });
  });
  const region = await config.region().catch(() => 'us-east-1');
  return { region, stack, aws: async () => ({ region, credentials }), environment };
}

// Says to the person who deploys why a stack could not be read.

const withoutPermission =
  'these credentials lack cloudformation:DescribeStacks, which is needed to notice removed options. ' +
  'Allow it, or compare the options by hand and run npx cdk deploy';

function wrapReadError(error: unknown, stackLabel: string): Error {
  const cause = { cause: error };
  if (!(error instanceof CloudFormationServiceException)) {
    const { message, code } = ((error as Error).cause ?? error) as { message: string; code?: string };
    return new Error(
      `cannot read ${stackLabel}: CloudFormation does not respond (${code ?? message})`,
      cause,
    );
  }
  const isForbidden = /AccessDenied|UnauthorizedOperation/.test(error.name);
  return new Error(
    `cannot read ${stackLabel}: ${isForbidden ? withoutPermission : `${error.name}: ${error.message}`}`,
    cause,
  );
}

// Compares the options of a file with those of the deployed stack.

/**
 * `refused` lists options of the stack that are missing from the file, unless accepted. `broken` lists why a rotation would
 * interrupt calls.
 * @param wanted the options of the file
 * @param accepted names of options that may be dropped, or of a whole map: `memory` for `memory.chat`
 */
export function compareOptions(
  deployed: PublishedOptions,
  wanted: StageOptions,
  accepted: readonly string[],
) {
  const isAccepted = (name: string): boolean =>
    accepted.some((each) => name === each || name.startsWith(`${each}.`));
  // A default that is written into the file was not forgotten.
  const written = selectWrittenOptions(wanted);
  const dropped = Object.keys(deployed).filter((name) => !Object.hasOwn(written, name));
  const changed = Object.entries(written).flatMap(([name, value]) => {
    const before = findDeployedValue(deployed, name);
    if (isDeepStrictEqual(before, value)) return [];
    return before === undefined
      ? [`${name}: ${JSON.stringify(value)} (new)`]
      : [`${name}: ${JSON.stringify(before)} -> ${JSON.stringify(value)}`];
  });
  const lost = dropped.map((name) => {
    const how = isAccepted(name) ? 'removed, as accepted' : 'would be removed';
    return `${name}: ${how} (deployed: ${JSON.stringify(deployed[name])})`;
  });
  const models = Object.hasOwn(written, 'bedrockModels') ? findLostModels(deployed, wanted) : [];
  return {
    differences: [...changed, ...lost],
    refused: [...dropped, ...models].filter((name) => !isAccepted(name)),
    broken: [
      ...findBrokenRotation('originSecrets', deployed, wanted),
      ...findBrokenRotation('sealKeys', deployed, wanted),
    ],
  };
}

const findDeployedValue = (deployed: PublishedOptions, name: string): unknown =>
  Object.hasOwn(deployed, name) ? deployed[name] : findOption(name)?.default;

/** Channels would get a 403 for a model that is taken out, so each is an option that is dropped: `bedrockModels.arn:...`. */
function findLostModels(deployed: PublishedOptions, { bedrockModels = [] }: StageOptions): string[] {
  const before = BedrockModels.safeParse(deployed['bedrockModels']);
  const kept = new Set(listModelArns(bedrockModels));
  return listModelArns(before.success ? before.data : [])
    .filter((model) => !kept.has(model))
    .map((model) => `bedrockModels.${model}`);
}

/** Describes the use of a number until a second deployment. */
const inUse = {
  originSecrets: 'CloudFront keeps sending it for minutes, and functions without it would answer 403',
  sealKeys: 'it decrypts the turn state that clients hold; keep it for 90 days',
} as const;

/** In one step nothing old would be accepted while the new one is not yet everywhere. */
function findBrokenRotation(
  name: keyof typeof inUse,
  deployed: PublishedOptions,
  wanted: StageOptions,
): string[] {
  const before = findDeployedValue(deployed, name) as readonly number[];
  const after = wanted[name] ?? (findOption(name)?.default as readonly number[]);
  const last = before.at(-1);
  if (last === undefined || after.includes(last)) return [];
  const isBack = name === 'sealKeys' && Math.max(...after) < last;
  const between = JSON.stringify([last, ...after].toSorted((a, b) => a - b));
  const way = isBack
    ? `Numbers must ascend: add one above ${last} instead`
    : `Deploy ${name === 'sealKeys' ? between : JSON.stringify([last, ...after])} first, then ${JSON.stringify(after)}`;
  return [`${name} without ${last}: ${inUse[name]}. ${way}`];
}
