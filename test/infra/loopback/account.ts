/** What exists in an account of AWS: resources of stacks, and what stacks left behind or never knew. */
import { namedBy, namespaceOf } from './names.ts';
import type { Resource } from './template.ts';

export interface Standing extends Resource {
  /** Undefined: it belongs to no stack, so a template can only import it. */
  owner: string | undefined;
}

interface Published {
  function: string;
  /** The number that Lambda gave. */
  version: string;
  of: string;
}

const versionType = 'AWS::Lambda::Version';

/** What Lambda compares before it publishes a version: code and configuration. */
export const publishedState = ({ properties }: Pick<Resource, 'properties'>): string =>
  JSON.stringify(properties);

export const emptyAccount = '000000000000';

export class Account {
  readonly id = emptyAccount;
  /** Of Lambda, for each region: what AWS gives an account, often 10 in a new one. */
  concurrentExecutions = 1_000;
  /** Names of buckets that hold something. */
  readonly filled = new Set<string>();
  readonly #standing = new Map<string, Standing>();
  /** By key of the version, last published last: what its function was then. */
  readonly #published = new Map<string, Published>();
  /** Log groups that Lambda makes at the first call of a function whose group no template names. */
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

  /** Leaves it standing, as nobody's. */
  disown(resource: Resource): void {
    this.#standing.set(keyOf(resource), { ...resource, owner: undefined });
  }

  /** Whoever it belongs to: a version that a stack left behind counts. */
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

  /** A resource of the same type and name, in the space in which a name can be there once. */
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

  /** A custom resource calls its function, and Lambda makes the log group that nobody deletes. */
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
