/** The names of a template that AWS wants to be unique, and where: in the account, or in one of its regions. */
import { readable } from './synthesize.ts';

/** Of a template; CDK leaves out properties where there are none. */
export interface AnyResource {
  Type: string;
  Properties?: Record<string, unknown>;
}

/** Types that an account has once for all regions. Buckets share their names with all accounts. */
const accountWide = /^AWS::(CloudFront|IAM|Route53|S3)::|^AWS::CloudWatch::Dashboard$|^AWS::Budgets::/;

/** Part of another resource, so its name is unique there. */
const inside = new Set([
  'AWS::IAM::Policy',
  'AWS::Lambda::Alias',
  'AWS::ApplicationAutoScaling::ScalingPolicy',
]);

/** The name that a template gives to a resource, readable. Undefined: AWS makes one. */
export function physicalName({ Type, Properties = {} }: AnyResource): string | undefined {
  if (inside.has(Type)) return undefined;
  const kind = Type.replace('GlobalTable', 'Table').split('::').at(-1);
  const { CachePolicyConfig, Name, Type: recordType } = Properties;
  const { Name: configName } = (CachePolicyConfig ?? {}) as { Name?: unknown };
  const name = Properties[`${kind}Name`] ?? configName ?? Name;
  if (name === undefined) return undefined;
  return Type === 'AWS::Route53::RecordSet' ? `${readable(name)} ${String(recordType)}` : readable(name);
}

/** What no other resource of the account may be called: type, region where that matters, and name. */
export function takenNames(resources: Record<string, AnyResource>, region: string): string[] {
  return Object.values(resources).flatMap((resource) => {
    const name = physicalName(resource);
    if (name === undefined) return [];
    return [`${resource.Type} ${accountWide.test(resource.Type) ? 'account' : region} ${name}`];
  });
}
