/** Decides which tables a run works on, before anything is opened. Every run prints the target first. */
import type { Target } from '../../../shared/operate/operator-ports.ts';
import { usageFailure } from '../../../shared/operate/operator-failure.ts';

const defaultStack = 'relay';
const defaultEndpoint = 'http://127.0.0.1:8000';
const stackName = /^[A-Za-z][A-Za-z0-9-]{0,127}$/;

/**
 * Chooses the tables: an endpoint in the environment, else the named stack, else the local default. Only
 * `--stack` selects a real AWS account; it is never guessed.
 */
export function resolveTarget(stack: string | undefined, environment: NodeJS.ProcessEnv): Target {
  if (stack !== undefined && !stackName.test(stack)) {
    throw usageFailure(
      `--stack ${stack} is not a stack name: letters, digits and -, such as relay or relay-test`,
    );
  }
  const named = environment['AWS_ENDPOINT_URL_DYNAMODB'];
  if (named) return { stack: stack ?? defaultStack, endpoint: named, local: isLoopback(named) };
  if (stack !== undefined) return { stack, local: false };
  return { stack: defaultStack, endpoint: defaultEndpoint, local: true };
}

function isLoopback(endpoint: string): boolean {
  const url = URL.parse(endpoint);
  if (url === null) throw usageFailure('AWS_ENDPOINT_URL_DYNAMODB is not an address');
  return ['localhost', '127.0.0.1', '[::1]'].includes(url.hostname);
}

/** The first line that every run prints. */
export function describeTarget(
  target: Target,
  region: string | undefined,
  environment: NodeJS.ProcessEnv,
): string {
  if (target.endpoint !== undefined) {
    const kind = target.local ? 'local tables' : 'tables';
    return `${kind} at ${target.endpoint} (${target.stack}-*)`;
  }
  const profile = environment['AWS_PROFILE'];
  return `stack ${target.stack} in ${region ?? 'no region'} (${profile ? `profile ${profile}` : 'default AWS credentials'})`;
}
