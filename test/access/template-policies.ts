/** The managed policies of a synthesized template, with every reference resolved for one account and region. */
import { resourcesOf, type Template } from '../infra/synthesize.ts';
import type { Statement } from './policy-document.ts';

export const account = '123456789012';
export const region = 'eu-west-1';
const partition = 'aws';

export interface ManagedPolicy {
  name: string;
  statements: Statement[];
}

/** Keyed by the last part of the construct's path: `support`. */
export function policiesOf(template: Template): Map<string, ManagedPolicy> {
  return new Map(
    resourcesOf(template, 'AWS::IAM::ManagedPolicy').map(([, { Properties: properties }]) => {
      const name = resolved(template, properties['ManagedPolicyName']) as string;
      const { Statement: statements } = resolved(template, properties['PolicyDocument']) as {
        Statement: Statement[];
      };
      return [String(name.split('-').at(-4)), { name, statements }];
    }),
  );
}

/** Permissions of the only inline policy of a function's role. @param role the prefix of its logical id */
export function rolePolicyOf(template: Template, role: string): ManagedPolicy {
  const [id, policy] =
    resourcesOf(template, 'AWS::IAM::Policy').find(([name]) => name.startsWith(role)) ?? [];
  if (!id || !policy) throw new Error(`the template has no policy of ${role}`);
  const { Statement: statements } = resolved(template, policy.Properties['PolicyDocument']) as {
    Statement: Statement[];
  };
  return { name: id, statements };
}

const pseudo: Readonly<Record<string, string>> = {
  'AWS::Partition': partition,
  'AWS::Region': region,
  'AWS::AccountId': account,
};

export const arnOf = (service: string, resource: string): string =>
  `arn:${partition}:${service}:${region}:${account}:${resource}`;

/** Throws at unknown references, so that none stays unresolved. */
function resolved(template: Template, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((each) => resolved(template, each));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value);
  const [[key, content] = ['', undefined]] = entries;
  if (key === 'Ref') return pseudo[String(content)] ?? unknownReference(value);
  if (key === 'Fn::Join') {
    const [separator, parts] = content as [string, unknown[]];
    return parts.map((part) => String(resolved(template, part))).join(separator);
  }
  if (key === 'Fn::GetAtt') {
    const [id, attribute] = content as [string, string];
    const { Type, Properties } = template.Resources[id] ?? unknownReference(value);
    if (Type === 'AWS::Logs::LogGroup' && attribute === 'Arn')
      return arnOf('logs', `log-group:relay-${id}-AbCdEfGhIjKl:*`);
    if (Type !== 'AWS::DynamoDB::GlobalTable' || attribute !== 'Arn') return unknownReference(value);
    return arnOf('dynamodb', `table/${String(resolved(template, Properties['TableName']))}`);
  }
  if (key.startsWith('Fn::')) return unknownReference(value);
  return Object.fromEntries(entries.map(([name, each]) => [name, resolved(template, each)]));
}

function unknownReference(value: object): never {
  throw new Error(`a policy refers to ${JSON.stringify(value)}`);
}
