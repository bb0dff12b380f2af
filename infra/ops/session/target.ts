/** Decides which tables a run works on, before anything is opened. Every run prints the target first. */
import type { AwsPlace } from '../../../shared/adapters/system/aws-place.ts';
import type { Target } from '../../../shared/operate/operator-ports.ts';
import { usageFailure } from '../../../shared/operate/operator-failure.ts';

const defaultStack = 'relay';
const defaultEndpoint = 'http://127.0.0.1:8000';
const stackName = /^[A-Za-z][A-Za-z0-9-]{0,127}$/;

/** The options of the program that say where it works. */
export interface TargetOptions extends AwsPlace {
  stack?: string;
  /** The stack `relay-<stage>`. */
  stage?: string;
}

/** Where a session reads and writes. */
export interface SessionTarget extends Target, AwsPlace {}

/**
 * Chooses the tables: an endpoint in the environment, else a deployed stack, else the local default. Only these options
 * select a real AWS account; it is never guessed.
 */
export function resolveTarget(options: TargetOptions, environment: NodeJS.ProcessEnv): SessionTarget {
  const { stage, region, profile } = options;
  if (stage !== undefined && options.stack !== undefined)
    throw usageFailure('--stage NAME is the stack relay-NAME: give --stage or --stack, not both');
  const stack = stage === undefined ? options.stack : `${defaultStack}-${stage}`;
  const place = { ...(region !== undefined && { region }), ...(profile !== undefined && { profile }) };
  if (stack !== undefined && !stackName.test(stack)) {
    throw usageFailure(`${stack} is not a stack name: letters, digits and -, such as relay or relay-test`);
  }
  const named = environment['AWS_ENDPOINT_URL_DYNAMODB'];
  if (named) return { stack: stack ?? defaultStack, endpoint: named, local: isLoopback(named) };
  if (stack !== undefined || region !== undefined || profile !== undefined)
    return { stack: stack ?? defaultStack, local: false, ...place };
  return { stack: defaultStack, endpoint: defaultEndpoint, local: true };
}

function isLoopback(endpoint: string): boolean {
  const url = URL.parse(endpoint);
  if (url === null) throw usageFailure('AWS_ENDPOINT_URL_DYNAMODB is not an address');
  // A local stack's emulator has an address of its own in 127.0.0.0/8. The URL has it in its usual form.
  return /^(?:localhost|\[::1\]|127(?:\.\d{1,3}){3})$/.test(url.hostname);
}

/** The first line that every run prints. */
export function describeTarget(
  target: SessionTarget,
  region: string | undefined,
  environment: NodeJS.ProcessEnv,
): string {
  if (target.endpoint !== undefined) {
    const kind = target.local ? 'local tables' : 'tables';
    return `${kind} at ${target.endpoint} (${target.stack}-*)`;
  }
  const profile = target.profile ?? environment['AWS_PROFILE'];
  return `stack ${target.stack} in ${region ?? 'no region'} (${profile ? `profile ${profile}` : 'default AWS credentials'})`;
}
