/** What the policies of a template allow, in the detail that rules need: actions and resources, with `*`. */
import type { Resource } from '../template.ts';
import { listOf, ofType, recordOf, type RuleContext } from './rule.ts';

export interface Policy {
  /** The resource that contains the policy; undefined for the role itself. */
  from: string | undefined;
  document: Record<string, unknown>;
  allows(action: string, resource: string): boolean;
}

/** The inline policies of a function's role, whichever resource attaches them. */
export function policiesOf(lambda: Resource | undefined, context: RuleContext): Policy[] {
  const role = [...context.resources.values()].find(
    ({ type, arn }) => type === 'AWS::IAM::Role' && arn === lambda?.properties['Role'],
  );
  return role === undefined ? [] : policiesOfRole(role, context);
}

export function policiesOfRole(role: Resource, context: RuleContext): Policy[] {
  const own = listOf(role.properties['Policies']).map((policy) => toPolicy(policy, undefined));
  const attached = ['AWS::IAM::Policy', 'AWS::IAM::RolePolicy', 'AWS::IAM::ManagedPolicy'].flatMap((type) =>
    ofType(context, type)
      .filter(({ properties }) =>
        listOf<string>(properties['Roles'] ?? properties['RoleName']).includes(role.physicalId),
      )
      .map(({ id, properties }) => toPolicy(properties, id)),
  );
  return [...own, ...attached];
}

function toPolicy(properties: Record<string, unknown>, from: string | undefined): Policy {
  const document = recordOf(properties['PolicyDocument']);
  return { from, document, allows: (action, resource) => allows(document, action, resource) };
}

/** Whether a statement allows it; conditions count as met. */
export function allows(document: Record<string, unknown>, action: string, resource: string): boolean {
  return listOf(document['Statement']).some(
    (statement) =>
      statement['Effect'] === 'Allow' &&
      namesAction(statement, action) &&
      listOf<string>(statement['Resource']).some((pattern) => matches(pattern, resource)),
  );
}

/** Caches by statement and action: tests ask a role's few dozen statements about each call for each resource. */
const namedActions = new WeakMap<object, Map<string, boolean>>();

function namesAction(statement: Record<string, unknown>, action: string): boolean {
  const known = namedActions.get(statement) ?? new Map<string, boolean>();
  namedActions.set(statement, known);
  const answer =
    known.get(action) ??
    listOf<string>(statement['Action']).some((pattern) =>
      matches(pattern.toLowerCase(), action.toLowerCase()),
    );
  known.set(action, answer);
  return answer;
}

/** Caches by pattern: rules match a few hundred patterns a million times. */
const expressions = new Map<string, RegExp>();

export function matches(pattern: string, text: string): boolean {
  const known = expressions.get(pattern);
  if (known) return known.test(text);
  const expression = pattern
    .replaceAll(/[.+^${}()|[\]\\]/g, String.raw`\$&`)
    .replaceAll('*', '.*')
    .replaceAll('?', '.');
  const made = new RegExp(`^${expression}$`);
  expressions.set(pattern, made);
  return made.test(text);
}
