/** All that exists in an AWS account: resources of stacks, and those that stacks left behind or never had. */
import { namedBy, namespaceOf } from './names.ts';
import type { Resource } from './template.ts';

export interface Standing extends Resource {
  /** Undefined if no stack owns it, so a template can only import it. */
  owner: string | undefined;
}

interface Published {
  function: string;
  /** The version number that Lambda assigned. */
  version: string;
  of: string;
}

const versionType = 'AWS::Lambda::Version';

/** The code and configuration that Lambda compares before it publishes a version. */
export const publishedState = ({ properties }: Pick<Resource, 'properties'>): string =>
  JSON.stringify(properties);

export const emptyAccount = '000000000000';

export class Account {
  readonly id = emptyAccount;
  /** Lambda's concurrency quota in each region; a new account often gets 10. */
  concurrentExecutions = 1_000;
  /** Names of buckets that are not empty. */
  readonly filled = new Set<string>();
  readonly #standing = new Map<string, Standing>();
  /** The function's state at publication, by key of the version, in the order of publication. */
  readonly #published = new Map<string, Published>();
  /** Log groups that Lambda creates at the first call of a function whose template defines none. */
  readonly #calledFunctions = new Set<string>();

  get standing(): Standing[] {
    return [...this.#standing.values()];
  }

  ownedBy(stackId: string): Standing[] {
    return this.standing.filter(({ owner }) => owner === stackId);
  }

  put(resource: Resource, owner: string | undefined): void {
    const key = keyOf(resource);
    if (resource.type === versionType && !this.#standing.has(key)) this.#publish(resource);
    this.#standing.set(key, { ...resource, owner });
    if (resource.type.startsWith('Custom::')) this.#call(String(resource.properties['ServiceToken']));
  }

  remove(resource: Resource): void {
    this.#standing.delete(keyOf(resource));
    this.#published.delete(keyOf(resource));
  }

  /** Keeps the resource without an owner. */
  disown(resource: Resource): void {
    this.#standing.set(keyOf(resource), { ...resource, owner: undefined });
  }

  /** Counts any owner, also a version that a stack left behind. */
  lastPublished(called: Resource): Published | undefined {
    return [...this.#published.values()].findLast((each) => each.function === called.physicalId);
  }

  #publish(version: Resource): void {
    const name = String(version.properties['FunctionName']);
    const called = this.standing.find(
      ({ type, physicalId }) => type === 'AWS::Lambda::Function' && physicalId === name,
    );
    if (called === undefined) return;
    const number = version.physicalId.split(':').at(-1) ?? '';
    this.#published.set(keyOf(version), { function: name, version: number, of: publishedState(called) });
  }

  /** A resource with the same type and name, within the scope in which names are unique. */
  taken(resource: Resource): Standing | undefined {
    const name = namedBy(resource.type, resource.properties);
    if (name === undefined) return undefined;
    const space = namespaceOf(resource.type, { account: this.id, region: resource.region });
    return this.standing.find(
      (other) =>
        other.type === resource.type &&
        namespaceOf(other.type, { account: this.id, region: other.region }) === space &&
        other.physicalId === resource.physicalId,
    );
  }

  /** A custom resource calls its function, so Lambda creates a log group that nobody deletes. */
  #call(functionArn: string): void {
    const called = this.standing.find(({ arn }) => arn === functionArn);
    if (called === undefined || this.#calledFunctions.has(functionArn)) return;
    this.#calledFunctions.add(functionArn);
    const { LogGroup } = (called.properties['LoggingConfig'] ?? {}) as { LogGroup?: unknown };
    if (LogGroup !== undefined) return;
    const name = `/aws/lambda/${called.physicalId}`;
    const group = { ...called, type: 'AWS::Logs::LogGroup', physicalId: name, arn: name };
    this.put({ ...group, properties: { LogGroupName: name } }, undefined);
  }
}

const keyOf = ({ type, region, physicalId }: Resource): string => `${type} ${region} ${physicalId}`;
