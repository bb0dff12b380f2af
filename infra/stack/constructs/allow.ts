import { PolicyStatement } from 'aws-cdk-lib/aws-iam';

/** A policy statement of a function's role. Everything that no statement allows is denied. */
export const allow = (service: string, actions: readonly string[], ...resources: string[]): PolicyStatement =>
  new PolicyStatement({ actions: actions.map((action) => `${service}:${action}`), resources });
