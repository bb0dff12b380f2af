/** Says which policy a command needs when AWS lets these credentials not do what it does. */
import { deniedExitCode, Failure } from '../../../shared/operate/plan.ts';
import { policyNameIn, type PolicyName } from '../../access/policies.ts';

interface DeniedRun {
  command: string;
  /** The policy that allows least of those with which it runs. */
  needed: PolicyName;
  stack: string;
  region: string | undefined;
}

/** JSON services and Query services name it differently. */
const deniedNames = new Set(['AccessDeniedException', 'AccessDenied']);

/** `User: ... is not authorized to perform: dynamodb:PutItem on resource: arn:...:table/relay-keys because ...` */
const refusal = /to perform: ([\w:]+)(?: on resource: (\S+))?/;

/** @returns undefined for any other error */
export function explainDenied(error: unknown, run: DeniedRun): Failure | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = 'code' in error ? String(error.code) : '';
  if (!deniedNames.has(error.name) && !deniedNames.has(code)) return undefined;
  const [, action = 'this', arn] = refusal.exec(error.message) ?? [];
  const resource = arn?.split(':').slice(5).join(':');
  const what = `AWS denied ${action}${resource ? ` on ${resource}` : ''}`;
  return new Failure(`${what}: ${composeAdvice(run, error.message)}`, deniedExitCode);
}

function composeAdvice({ command, needed, stack, region = '<region>' }: DeniedRun, message: string): string {
  const policy = policyNameIn(stack, needed, region);
  if (!message.includes('explicit deny'))
    return `attach the policy ${policy} to your user or role to run \`${command}\``;
  return `another policy forbids it. Run \`${command}\` as a role with ${policy} and without ${policyNameIn(stack, 'operator', region)}`;
}
