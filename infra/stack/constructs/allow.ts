import { PolicyStatement } from 'aws-cdk-lib/aws-iam';

/** A statement of a function's role. Nothing that no statement names is allowed. */
export const allow = (service: string, actions: readonly string[], ...resources: string[]): PolicyStatement =>
  new PolicyStatement({ actions: actions.map((action) => `${service}:${action}`), resources });
