/**
 * Checks the name of a relay. It is the prefix of every name that must be unique in an account and region. A second relay of the
 * same name would fail in the middle of its deployment.
 */
import { Stack, Token } from 'aws-cdk-lib';
import type { Construct, IConstruct } from 'constructs';

/** Leaves room for a region and a purpose in the longest name, that of a CloudFront function. */
const namePattern = /^[a-z][a-z0-9-]{0,26}$/;

/** Throws an Error with the reason. @param nameOf returns the name of a relay, or undefined for another construct */
export function refuseName(
  relay: Construct,
  name: string,
  nameOf: (found: IConstruct) => string | undefined,
): void {
  const { path, root } = relay.node;
  if (Token.isUnresolved(name) || !namePattern.test(name))
    throw new Error(
      `${path}: name is ${JSON.stringify(name)}, expected a lower-case letter, then at most 26 lower-case letters, digits and dashes`,
    );
  const other = root.node
    .findAll()
    .find((found) => found !== relay && nameOf(found) === name && areInOnePlace(relay, found));
  if (other)
    throw new Error(
      `${path} and ${other.node.path} are both named ${name} in one account and region: use different names`,
    );
}

function areInOnePlace(one: IConstruct, other: IConstruct): boolean {
  const [here, there] = [findDeployedStack(one), findDeployedStack(other)];
  if (here === there) return true;
  // A stack without account and region can be deployed anywhere.
  const places = [here.account, here.region, there.account, there.region];
  return !places.some(Token.isUnresolved) && here.environment === there.environment;
}

/** A nested stack is deployed to the place of its parent. */
function findDeployedStack(construct: IConstruct): Stack {
  const stack = Stack.of(construct);
  return stack.nestedStackParent ? findDeployedStack(stack.nestedStackParent) : stack;
}
