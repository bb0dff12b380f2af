/** Says to the person who deploys why a stack could not be read. */
import { StackRefusal } from '../../shared/adapters/aws/describe-stack.ts';

const withoutPermission =
  'these credentials may not call cloudformation:DescribeStacks, without which nobody notices a dropped option. ' +
  'Allow it, or compare by hand and run npx cdk deploy';

/** @param what the stack and its region */
export function unreadable(error: unknown, what: string): Error {
  const cause = { cause: error };
  if (!(error instanceof StackRefusal)) {
    const { message, code } = ((error as Error).cause ?? error) as { message: string; code?: string };
    return new Error(`${what} could not be read: CloudFormation does not answer (${code ?? message})`, cause);
  }
  const isForbidden = /AccessDenied|UnauthorizedOperation/.test(error.code);
  return new Error(
    `${what} could not be read: ${isForbidden ? withoutPermission : `${error.code}: ${error.message}`}`,
    cause,
  );
}
