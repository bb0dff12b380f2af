/**
 * A double of the order in which CloudFormation updates a stack: what is new, changed or to be replaced first, each after
 * all that it refers to; what is no longer wanted afterwards, each before all that it refers to. Where the order is open,
 * CloudFormation works on several resources at once, so a seed decides.
 */
import type { Resource, Template } from '../infra/synthesize.ts';

export interface Step {
  kind: 'create' | 'update' | 'delete';
  id: string;
  /** Of a replaced resource there are two under one id: the step is about the one of this template. */
  of: 'before' | 'after';
}

type Random = () => number;

/** A change of these cannot be made in place: the resource is made anew, and the old one deleted in the end. */
const replacedBy: Record<string, string[]> = {
  'AWS::Lambda::Url': ['TargetFunctionArn', 'Qualifier'],
  'AWS::Lambda::Permission': ['Action', 'FunctionName', 'Principal', 'FunctionUrlAuthType'],
  'AWS::Lambda::Version': ['FunctionName', 'Description'],
  'AWS::Lambda::Alias': ['Name', 'FunctionName'],
};

/** The ids of the template that a resource waits for. */
function waitsFor(template: Template, id: string): string[] {
  const resource = template.Resources[id] as
    | (Omit<Resource, 'DependsOn'> & { DependsOn?: string | string[]; UpdatePolicy?: unknown })
    | undefined;
  const text = JSON.stringify([resource?.Properties, resource?.UpdatePolicy]);
  const references = [...text.matchAll(/"Ref":"(\w+)"|"Fn::GetAtt":\["(\w+)"/g)].map(
    ([, ref, att]) => ref ?? att,
  );
  const named = [references, resource?.DependsOn ?? []].flat(2);
  return [...new Set(named)].filter(
    (name) => name !== undefined && name !== id && name in template.Resources,
  ) as string[];
}

const replaced = (before: Resource, after: Resource): boolean =>
  before.Type !== after.Type ||
  (replacedBy[after.Type] ?? []).some(
    (name) => JSON.stringify(before.Properties[name]) !== JSON.stringify(after.Properties[name]),
  );

/** All orders in which a stack can be updated: one for each random. Throws for templates that refer to each other in a circle. */
export function stackUpdate(before: Template, after: Template): (random: Random) => Step[] {
  const old = before.Resources;
  const changes = Object.entries(after.Resources).flatMap(([id, wanted]): [string, Step][] => {
    const former = old[id];
    if (former === undefined || replaced(former, wanted)) return [[id, { kind: 'create', id, of: 'after' }]];
    if (JSON.stringify(former) === JSON.stringify(wanted)) return [];
    return [[id, { kind: 'update', id, of: 'after' }]];
  });
  const gone = Object.entries(old).flatMap(([id, former]): [string, Step][] => {
    const wanted = after.Resources[id];
    const goes = wanted === undefined || replaced(former, wanted);
    return goes && former.DeletionPolicy !== 'Retain' ? [[id, { kind: 'delete', id, of: 'before' }]] : [];
  });
  const [change, remove] = [ordering(after, new Map(changes)), ordering(before, new Map(gone))];
  return (random) => [...change(random), ...remove(random).toReversed()];
}

/** Each step after those of all that its resource waits for, in this template. */
function ordering(template: Template, steps: Map<string, Step>): (random: Random) => Step[] {
  const waits = new Map([...steps.keys()].map((id) => [id, waitsFor(template, id)]));
  return (random) => {
    const left = new Map(steps);
    const done: Step[] = [];
    while (left.size > 0) {
      const free = [...left.values()].filter(({ id }) => !waits.get(id)?.some((other) => left.has(other)));
      const next = free[Math.floor(random() * free.length)];
      if (next === undefined) throw new Error(`a circle: ${[...left.keys()].join(', ')}`);
      left.delete(next.id);
      done.push(next);
    }
    return done;
  };
}
