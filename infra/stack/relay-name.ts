/**
 * The name of a relay: the first part of every name that AWS wants to be unique in an account and region. Two relays of one
 * name in one place would fail in the middle of a deployment, at the second table, so they are refused before it.
 */
import { Stack, Token } from 'aws-cdk-lib';
import { Construct } from 'constructs';

/** The longest name, of a CloudFront function, still has room for a region and a purpose. */
const namePattern = /^[a-z][a-z0-9-]{0,26}$/;

export class RelayName extends Construct {
  readonly value: string;

  constructor(scope: Construct, id: string, value: string) {
    super(scope, id);
    this.value = value;
    if (Token.isUnresolved(value) || !namePattern.test(value))
      throw new Error(
        `${scope.node.path}: name is ${JSON.stringify(value)}, wanted a lower-case letter, then at most 26 lower-case letters, digits and dashes`,
      );
    const other = this.node.root.node.findAll().find((found) => found !== this && this.isSame(found));
    if (other?.node.scope)
      throw new Error(
        `${scope.node.path} and ${other.node.scope.node.path} are both named ${value} in one account and region: give one another name`,
      );
  }

  private isSame(other: unknown): boolean {
    if (!(other instanceof RelayName) || other.value !== this.value) return false;
    const [here, there] = [deployedWith(this), deployedWith(other)];
    if (here === there) return true;
    // A stack without account and region may be deployed anywhere.
    const places = [here.account, here.region, there.account, there.region];
    return !places.some(Token.isUnresolved) && here.environment === there.environment;
  }
}

/** A nested stack goes where its parent goes. */
function deployedWith(construct: Construct): Stack {
  const stack = Stack.of(construct);
  return stack.nestedStackParent ? deployedWith(stack.nestedStackParent) : stack;
}
