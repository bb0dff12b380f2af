/**
 * A rule of a service that no schema contains: breaking it fails the deployment, or AWS deploys a resource that can't
 * work.
 */
import type { Account, Standing } from '../account.ts';
import { waitsFor, type Action, type Resource } from '../template.ts';

export interface RuleContext {
  account: Account;
  region: string;
  stackId: string;
  /** The whole stack after the change. */
  resources: ReadonlyMap<string, Resource>;
  /** The stack before the change. */
  before: ReadonlyMap<string, Standing>;
}

export interface ServiceRule {
  id: string;
  /** Resource types; `*` for all. */
  types: readonly string[];
  /** The documentation of the rule. */
  source: string;
  /** The reason for a refusal, prefixed with the service's error code if it has one. */
  check(resource: Resource, context: RuleContext & { action: Action }): string | undefined;
}

export const ofType = (context: RuleContext, type: string): Resource[] =>
  [...context.resources.values()].filter((resource) => resource.type === type);

/** Whether a resource is created only after another one. */
export const waitingFor = (context: RuleContext, resource: Resource, id: string): boolean =>
  waitsFor(context.resources, resource, id);

/** The list in a property, or an empty one. */
export const listOf = <Item = Record<string, unknown>>(value: unknown): Item[] =>
  (value === undefined ? [] : [value].flat()) as Item[];

export const recordOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};

export const documentation = 'https://docs.aws.amazon.com/';
