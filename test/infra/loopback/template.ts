/** A template as it is submitted, and its resources with every reference replaced by what AWS would put there. */

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

/** A value as the text that AWS would be sent. */
export const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value) ?? '');

/** What a change set does with a resource. */
export type Action = 'Add' | 'Import' | 'Modify' | 'Replace' | 'Remove';

export interface Resource {
  /** In the template. */
  id: string;
  type: string;
  properties: Record<string, unknown>;
  /** What `Ref` gives. */
  physicalId: string;
  arn: string;
  stack: string;
  region: string;
  /** The resource that has the name of the template, not one that CloudFormation made. */
  isNamed: boolean;
  /** Logical ids that it refers to, in properties and in DependsOn, without those that they refer to. */
  needs: ReadonlySet<string>;
  deletionPolicy: string;
  updatePolicy: Record<string, unknown>;
}

/** Logical ids in the order in which CloudFormation may make them. */
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

/** Whether one resource is made before another one, by a chain of references or DependsOn. */
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
