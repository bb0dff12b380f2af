/** The names of a template that must be unique in the account or in one of its regions. */
import { readable } from './synthesize.ts';

/** A resource of a template; CDK omits empty properties. */
export interface AnyResource {
  Type: string;
  Properties?: Record<string, unknown>;
}

/** Types whose names are unique across all regions of an account; names of buckets even across accounts. */
const accountWide = /^AWS::(CloudFront|IAM|Route53|S3)::|^AWS::CloudWatch::Dashboard$|^AWS::Budgets::/;

/** Part of another resource, so its name is unique there. */
const inside = new Set([
  'AWS::IAM::Policy',
  'AWS::Lambda::Alias',
  'AWS::ApplicationAutoScaling::ScalingPolicy',
]);

/** The readable name of a resource in a template. Undefined if AWS generates one. */
export function physicalName({ Type, Properties = {} }: AnyResource): string | undefined {
  if (inside.has(Type)) return undefined;
  const kind = Type.replace('GlobalTable', 'Table').split('::').at(-1);
  const { CachePolicyConfig, Name, Type: recordType } = Properties;
  const { Name: configName } = (CachePolicyConfig ?? {}) as { Name?: unknown };
  const name = Properties[`${kind}Name`] ?? configName ?? Name;
  if (name === undefined) return undefined;
  return Type === 'AWS::Route53::RecordSet' ? `${readable(name)} ${String(recordType)}` : readable(name);
}

/** The taken names: type, region where that matters, and name. */
export function takenNames(resources: Record<string, AnyResource>, region: string): string[] {
  return Object.values(resources).flatMap((resource) => {
    const name = physicalName(resource);
    if (name === undefined) return [];
    return [`${resource.Type} ${accountWide.test(resource.Type) ? 'account' : region} ${name}`];
  });
}
