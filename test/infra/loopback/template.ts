/** A submitted template, and its resources with every reference replaced by the value that AWS would use. */

export interface DeployedTemplate {
  Resources: Record<string, TemplateResource>;
  Outputs?: Record<string, { Value: unknown; Export?: { Name: unknown } }>;
  Parameters?: Record<string, { Default?: unknown }>;
}

export interface TemplateResource {
  Type: string;
  Properties?: Record<string, unknown>;
  DependsOn?: string | string[];
  DeletionPolicy?: string;
  UpdateReplacePolicy?: string;
  UpdatePolicy?: Record<string, unknown>;
}

/** A value as text, as AWS would receive it. */
export const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value) ?? '');

/** The action of a change set on a resource. */
export type Action = 'Add' | 'Import' | 'Modify' | 'Replace' | 'Remove';

export interface Resource {
  /** In the template. */
  id: string;
  type: string;
  properties: Record<string, unknown>;
  /** The value of `Ref`. */
  physicalId: string;
  arn: string;
  stack: string;
  region: string;
  /** Whether the template names the resource, not CloudFormation. */
  isNamed: boolean;
  /** Logical ids of its direct references, in properties and in DependsOn. */
  needs: ReadonlySet<string>;
  deletionPolicy: string;
  updatePolicy: Record<string, unknown>;
}

/** Logical ids in an order in which CloudFormation can create them. */
export function inOrder(resources: ReadonlyMap<string, Resource>): Resource[] {
  const ordered = new Map<string, Resource>();
  const visit = (id: string, above: readonly string[]): void => {
    const resource = resources.get(id);
    if (resource === undefined || ordered.has(id)) return;
    if (above.includes(id)) throw new Error(`Circular dependency between resources: ${above.join(', ')}`);
    for (const needed of resource.needs) visit(needed, [...above, id]);
    ordered.set(id, resource);
  };
  for (const id of resources.keys()) visit(id, []);
  return [...ordered.values()];
}

/** Whether a chain of references or DependsOn makes one resource wait for another. */
export function waitsFor(resources: ReadonlyMap<string, Resource>, from: Resource, to: string): boolean {
  const seen = new Set<string>();
  const visit = (id: string): boolean => {
    if (id === to) return true;
    if (seen.has(id)) return false;
    seen.add(id);
    return [...(resources.get(id)?.needs ?? [])].some(visit);
  };
  return [...from.needs].some(visit);
}
