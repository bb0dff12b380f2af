/** Rejects unknown props of the packaged construct, and values that the options of a stage would reject too. */
import { Token } from 'aws-cdk-lib';
import type { Construct } from 'constructs';
import { isPlain, findPropProblems, type PropRules } from './prop-problems.ts';

/** Throws an Error that names every such prop. @param region the construct's region */
export function refuseProps(construct: Construct, props: object, rules: PropRules, region: string): void {
  const problems = findPropProblems({ ...props }, rules, { isKnown, ...(isKnown(region) && { region }) });
  if (problems.length > 0)
    throw new Error(problems.map((each) => `${construct.node.path}: ${each}`).join('\n'));
}

/** Returns false for values that only CloudFormation can resolve. */
const isKnown = (value: unknown): boolean =>
  !Token.isUnresolved(value) &&
  (typeof value !== 'object' || value === null || !isPlain(value) || Object.values(value).every(isKnown));
