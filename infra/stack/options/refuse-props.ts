/** Refuses props of the package's constructs that nothing reads, and values that the options of a stage could not say either. */
import { Token } from 'aws-cdk-lib';
import type { Construct } from 'constructs';
import { isPlain, findPropProblems, type PropRules } from './prop-problems.ts';

/** Throws an Error that names every such prop. @param region where it is used */
export function refuseProps(construct: Construct, props: object, rules: PropRules, region: string): void {
  const problems = findPropProblems({ ...props }, rules, { isKnown, ...(isKnown(region) && { region }) });
  if (problems.length > 0)
    throw new Error(problems.map((each) => `${construct.node.path}: ${each}`).join('\n'));
}

/** Not only to CloudFormation. */
const isKnown = (value: unknown): boolean =>
  !Token.isUnresolved(value) &&
  (typeof value !== 'object' || value === null || !isPlain(value) || Object.values(value).every(isKnown));
