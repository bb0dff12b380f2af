/**
 * A rule of a service that no schema has: the service answers an error and the stack rolls back, or AWS deploys what then
 * never does what it is for.
 */
import type { Account, Standing } from '../account.ts';
import { waitsFor, type Action, type Resource } from '../template.ts';

export interface RuleContext {
  account: Account;
  region: string;
  stackId: string;
  /** The whole stack as it will stand. */
  resources: ReadonlyMap<string, Resource>;
  /** The stack as it stands. */
  before: ReadonlyMap<string, Standing>;
}

export interface ServiceRule {
  id: string;
  /** Of resources; `*` is all. */
  types: readonly string[];
  /** The documentation that says so. */
  source: string;
  /** The reason of a refusal, beginning with the service's error code if it has one. */
  check(resource: Resource, context: RuleContext & { action: Action }): string | undefined;
}

export const ofType = (context: RuleContext, type: string): Resource[] =>
  [...context.resources.values()].filter((resource) => resource.type === type);

/** Whether a resource is made only when another one stands. */
export const waitingFor = (context: RuleContext, resource: Resource, id: string): boolean =>
  waitsFor(context.resources, resource, id);

/** A list in a property, or none. */
export const listOf = <Item = Record<string, unknown>>(value: unknown): Item[] =>
  (value === undefined ? [] : [value].flat()) as Item[];

export const recordOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};

export const documentation = 'https://docs.aws.amazon.com/';
