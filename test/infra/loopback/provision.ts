/** Applies a template to an account as CloudFormation does: completely, or not at all. */
import type { Account, Standing } from './account.ts';
import type { ExecutionRole } from './execution-role.ts';
import { checkSchemas } from './schemas.ts';
import { serviceRules } from './rules/stack-rules.ts';
import type { RuleContext } from './rules/rule.ts';
import { inOrder, type Action, type Resource } from './template.ts';

export interface Change {
  action: Action;
  resource: Resource;
}

export interface Failure {
  id: string;
  type: string;
  /** The violated rule: `schema` for CloudFormation's schema of the type, `role` for a call that the role may not make. */
  rule: string;
  reason: string;
}

export interface ChangePlan {
  changes: Change[];
  /** The resources after the change: those that are not replaced keep their names. */
  resources: ReadonlyMap<string, Resource>;
}

export interface Deployment {
  account: Account;
  /** The owner of new resources. */
  stackId: string;
  region: string;
  /** As in CreateChangeSet: take over existing resources of the same name that no stack owns. */
  importExisting: boolean;
  /** Injected failures, by logical id, for tests of failed deployments. */
  broken: (id: string) => string | undefined;
  /** Undefined if the deployer may call everything. */
  role?: ExecutionRole | undefined;
}

/** Plans the changes without checking any rule. */
export function planChanges(wanted: ReadonlyMap<string, Resource>, deployment: Deployment): ChangePlan {
  const { account, stackId, region, importExisting } = deployment;
  const before = new Map(account.ownedBy(stackId).map((standing) => [standing.id, standing]));
  const createOnly = createOnlyOf([...wanted.values(), ...before.values()], region);
  const changes: Change[] = [];
  for (const resource of wanted.values()) {
    const old = before.get(resource.id);
    if (old === undefined || old.type !== resource.type) {
      const taken = account.taken(resource);
      const imports = importExisting && taken?.owner === undefined && taken !== undefined;
      changes.push({ action: imports ? 'Import' : 'Add', resource });
    } else if (!sameState(old, resource)) {
      const replaced = [...(createOnly.get(resource.type) ?? [])].some(
        (path) => !sameAt(old, resource, path),
      );
      changes.push({ action: replaced ? 'Replace' : 'Modify', resource });
    }
  }
  for (const old of before.values())
    if (wanted.get(old.id)?.type !== old.type) changes.push({ action: 'Remove', resource: old });
  return { changes, resources: wanted };
}

/**
 * Carries the changes out in the order of their references. The first refusal rolls everything back, except for retained
 * resources of a first deployment: they stay without an owner.
 */
export function carryOut(plan: ChangePlan, deployment: Deployment): Failure | undefined {
  const { account, stackId } = deployment;
  const before = new Map(account.ownedBy(stackId).map((standing) => [standing.id, standing]));
  const failures = failuresOf(plan, deployment, before);
  const actions = new Map(plan.changes.map((change) => [change.resource.id, change.action]));
  const made: Resource[] = [];
  for (const resource of inOrder(plan.resources)) {
    const action = actions.get(resource.id);
    if (action === undefined) continue;
    const failure = failures.get(resource.id);
    if (failure !== undefined) {
      rollBack({ made, before, account, stackId });
      return failure;
    }
    const old = before.get(resource.id);
    if (old !== undefined) account.remove(old);
    account.put(resource, stackId);
    made.push(resource);
  }
  for (const { action, resource } of plan.changes) if (action === 'Remove') removeOne(resource, account);
  return undefined;
}

interface RollBack {
  made: Resource[];
  before: ReadonlyMap<string, Standing>;
  account: Account;
  stackId: string;
}

function rollBack({ made, before, account, stackId }: RollBack): void {
  for (const resource of made.toReversed()) {
    const old = before.get(resource.id);
    // RetainExceptOnCreate retains the resource, except when its own creation is rolled back.
    if (old === undefined && resource.deletionPolicy === 'Retain') {
      account.disown(resource);
      continue;
    }
    account.remove(resource);
    if (old !== undefined) account.put(old, stackId);
    else removeVersions(resource, account);
  }
}

/** Deletes a stack's resources in reverse order of creation. Reports those that can't be deleted; the stack keeps them. */
export function deleteAll(resources: readonly Standing[], account: Account, role?: ExecutionRole): Failure[] {
  const byId = new Map(resources.map((resource) => [resource.id, resource]));
  const failures: Failure[] = [];
  for (const resource of inOrder(byId).toReversed()) {
    const isKept = resource.deletionPolicy.startsWith('Retain');
    const refusal = isKept ? undefined : role?.refusal(resource, 'Remove');
    const reason = refusal ?? removeOne(resource, account);
    if (reason !== undefined) failures.push({ id: resource.id, type: resource.type, rule: 'delete', reason });
  }
  return failures;
}

function removeOne(resource: Resource, account: Account): string | undefined {
  const isKept = resource.deletionPolicy.startsWith('Retain');
  if (!isKept && resource.properties['DeletionProtectionEnabled'] === true)
    return `Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.`;
  if (!isKept && protectedReplica(resource))
    return 'Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.';
  if (!isKept && resource.type === 'AWS::S3::Bucket' && account.filled.has(resource.physicalId))
    return 'The bucket you tried to delete is not empty';
  if (isKept) {
    account.disown(resource);
    return undefined;
  }
  // CDK's function empties the bucket.
  if (resource.type === 'Custom::S3AutoDeleteObjects')
    account.filled.delete(String(resource.properties['BucketName']));
  account.remove(resource);
  removeVersions(resource, account);
  return undefined;
}

/** Lambda deletes all versions together with their function, even those that stacks retain. */
function removeVersions({ type, physicalId, region }: Resource, account: Account): void {
  if (type !== 'AWS::Lambda::Function') return;
  for (const version of account.standing)
    if (
      version.type === 'AWS::Lambda::Version' &&
      version.region === region &&
      version.properties['FunctionName'] === physicalId
    )
      account.remove(version);
}

function protectedReplica({ properties }: Resource): boolean {
  const replicas = (properties['Replicas'] ?? []) as { DeletionProtectionEnabled?: boolean }[];
  return Array.isArray(replicas) && replicas.some((replica) => replica.DeletionProtectionEnabled === true);
}

function failuresOf(
  plan: ChangePlan,
  deployment: Deployment,
  before: ReadonlyMap<string, Standing>,
): Map<string, Failure> {
  const { account, region, stackId, broken, role } = deployment;
  const changed = plan.changes.filter(({ action }) => action !== 'Remove');
  const { errors } = checkSchemas(
    changed.map(({ resource }) => resource),
    region,
  );
  const context: RuleContext = { account, region, stackId, resources: plan.resources, before };
  const failures = new Map<string, Failure>();
  for (const { action, resource } of changed) {
    const failure = [
      ...(errors.get(resource.id) ?? []).map((reason) => ({ rule: 'schema', reason })),
      ...serviceRules
        .filter(({ types }) => types.some((type) => type === resource.type || type === '*'))
        .map((rule) => ({ rule: rule.id, reason: rule.check(resource, { ...context, action }) })),
      { rule: 'role', reason: role?.refusal(resource, action) },
      { rule: 'broken', reason: broken(resource.id) },
    ].find(({ reason }) => reason !== undefined);
    if (failure?.reason !== undefined)
      failures.set(resource.id, {
        id: resource.id,
        type: resource.type,
        rule: failure.rule,
        reason: failure.reason,
      });
  }
  return failures;
}

/** By type: the properties that cannot change without a new resource. */
function createOnlyOf(resources: Resource[], region: string): Map<string, Set<string>> {
  const numbered = resources.map((resource, index) => ({ ...resource, id: `R${index}` }));
  const { createOnly } = checkSchemas(numbered, region);
  const byType = new Map<string, Set<string>>();
  for (const { id, type } of numbered)
    byType.set(type, new Set([...(byType.get(type) ?? []), ...(createOnly.get(id) ?? [])]));
  return byType;
}

const text = (value: unknown): string => JSON.stringify(value) ?? '';

const sameState = (old: Resource, wanted: Resource): boolean =>
  text(old.properties) === text(wanted.properties) && old.deletionPolicy === wanted.deletionPolicy;

function sameAt(old: Resource, wanted: Resource, path: string): boolean {
  const at = ({ properties }: Resource): unknown =>
    path
      .split(/[./]/)
      .reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], properties);
  return text(at(old)) === text(at(wanted));
}
