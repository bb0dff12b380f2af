/** What CloudFormation, DynamoDB, IAM and CloudFront reject because of existing resources: names, imports, replacements, sizes. */
import { textOf } from '../template.ts';
import { zonesWithoutVpcOrigins } from '../../../../infra/stack/options/streaming-regions.ts';
import { namedBy } from '../names.ts';
import { zonesOf } from '../zones.ts';
import { lambdaRules } from './lambda-rules.ts';
import { policiesOfRole } from './policies.ts';
import { documentation, listOf, ofType, recordOf, type ServiceRule } from './rule.ts';

const cloudFormation = `${documentation}AWSCloudFormation/latest/`;

const tables = ['AWS::DynamoDB::GlobalTable', 'AWS::DynamoDB::Table'] as const;

const indexNames = (properties: Record<string, unknown>): string[] =>
  listOf<{ IndexName: string }>(properties['GlobalSecondaryIndexes']).map(({ IndexName }) => IndexName);

const aliasesOf = (properties: Record<string, unknown>): string[] =>
  listOf<string>(recordOf(properties['DistributionConfig'])['Aliases']);

const iamQuotas = `${documentation}IAM/latest/UserGuide/reference_iam-quotas.html`;
const inlineMax = 10_240;
const managedMax = 6_144;

/** As IAM counts: without white space. */
const lengthOf = (document: unknown): number => JSON.stringify(document ?? {}).length;

export const serviceRules: readonly ServiceRule[] = [
  ...lambdaRules,
  {
    id: 'name-taken',
    types: ['*'],
    source: `${cloudFormation}UserGuide/troubleshooting.html#troubleshooting-errors-resource-already-exists`,
    check(resource, { account, action, stackId }) {
      if (action !== 'Add' && action !== 'Replace') return undefined;
      const taken = account.taken(resource);
      const isItself = taken?.owner === stackId && taken.id === resource.id;
      if (taken === undefined || isItself) return undefined;
      const whose = taken.owner === undefined ? '' : ` in stack ${taken.owner}`;
      return `AlreadyExists: Resource of type '${resource.type}' with identifier '${resource.physicalId}' already exists${whose}.`;
    },
  },
  {
    id: 'name-twice',
    types: ['*'],
    source: `${cloudFormation}TemplateReference/aws-properties-name.html`,
    check(resource, { resources }) {
      if (!resource.isNamed) return undefined;
      const first = [...resources.values()].find(
        (other) => other.type === resource.type && other.physicalId === resource.physicalId,
      );
      if (first === undefined || first.id === resource.id) return undefined;
      return `AlreadyExists: ${resource.physicalId} already exists in stack: ${first.id} has the name too`;
    },
  },
  {
    id: 'import-retained',
    types: ['*'],
    source: `${cloudFormation}UserGuide/import-resources-automatically.html`,
    check({ deletionPolicy, physicalId }, { action }) {
      if (action !== 'Import' || deletionPolicy.startsWith('Retain')) return undefined;
      return `ValidationError: ${physicalId} exists and cannot be imported: its DeletionPolicy is not Retain or RetainExceptOnCreate`;
    },
  },
  {
    id: 'import-key-schema',
    types: tables,
    source: `${cloudFormation}UserGuide/import-resources-manually.html`,
    check(resource, { account, action }) {
      if (action !== 'Import') return undefined;
      const keys = JSON.stringify(account.taken(resource)?.properties['KeySchema']);
      if (keys === JSON.stringify(resource.properties['KeySchema'])) return undefined;
      return `${resource.physicalId} is imported with other keys than it has: nothing compares them, and every read fails`;
    },
  },
  {
    id: 'import-stream',
    types: tables,
    source: `${documentation}amazondynamodb/latest/developerguide/PointInTimeRecovery.Tutorial.html`,
    check(resource, { account, action }) {
      const { StreamViewType: wanted } = recordOf(resource.properties['StreamSpecification']);
      const { StreamViewType: found } = recordOf(account.taken(resource)?.properties['StreamSpecification']);
      if (action !== 'Import' || wanted === found) return undefined;
      return `Attribute 'StreamArn' does not exist: ${resource.physicalId} is imported as it is, with stream ${textOf(found ?? 'off')}, not ${textOf(wanted)}`;
    },
  },
  {
    id: 'custom-name-replaced',
    types: ['*'],
    source: `${cloudFormation}TemplateReference/aws-properties-name.html`,
    check(resource, { action, before }) {
      const old = before.get(resource.id);
      if (action !== 'Replace' || old === undefined || !resource.isNamed) return undefined;
      if (namedBy(old.type, old.properties) !== namedBy(resource.type, resource.properties)) return undefined;
      return `CloudFormation cannot update a stack when a custom-named resource requires replacing. Rename ${resource.physicalId} and update the stack again.`;
    },
  },
  {
    id: 'table-one-index-at-once',
    types: tables,
    source: `${documentation}amazondynamodb/latest/APIReference/API_UpdateTable.html`,
    check({ id, properties }, { before: standing, action }) {
      const old = standing.get(id);
      if (action !== 'Modify' || old === undefined) return undefined;
      const [before, after] = [indexNames(old.properties), indexNames(properties)];
      const changed = [
        ...before.filter((name) => !after.includes(name)),
        ...after.filter((name) => !before.includes(name)),
      ];
      if (changed.length <= 1) return undefined;
      return `ValidationException: Cannot perform more than one GSI creation or deletion in a single update (${changed.join(', ')})`;
    },
  },
  {
    id: 'role-inline-size',
    types: ['AWS::IAM::Role'],
    source: iamQuotas,
    check(role, context) {
      const managed = new Set(ofType(context, 'AWS::IAM::ManagedPolicy').map(({ id }) => id));
      const inline = policiesOfRole(role, context).filter(({ from }) => !managed.has(from ?? ''));
      const size = inline.reduce((sum, { document }) => sum + lengthOf(document), 0);
      if (size <= inlineMax) return undefined;
      return `LimitExceeded: Maximum policy size of ${inlineMax} bytes exceeded for role ${role.physicalId} (${size})`;
    },
  },
  {
    id: 'managed-policy-size',
    types: ['AWS::IAM::ManagedPolicy'],
    source: iamQuotas,
    check({ properties }) {
      const size = lengthOf(properties['PolicyDocument']);
      if (size <= managedMax) return undefined;
      return `LimitExceeded: Cannot exceed quota for PolicySize: ${managedMax} (${size})`;
    },
  },
  {
    id: 'vpc-origin-zone',
    types: ['AWS::CloudFront::VpcOrigin'],
    source: `${documentation}AmazonCloudFront/latest/DeveloperGuide/private-content-vpc-origins.html#vpc-origins-supported-regions`,
    check({ properties, region }, context) {
      const { Arn } = recordOf(properties['VpcOriginEndpointConfig']);
      const balancer = ofType(context, 'AWS::ElasticLoadBalancingV2::LoadBalancer').find(
        ({ physicalId }) => physicalId === Arn,
      );
      const subnets = listOf<string>(balancer?.properties['Subnets']);
      const zones = ofType(context, 'AWS::EC2::Subnet')
        .filter(({ physicalId }) => subnets.includes(physicalId))
        .map(({ properties: { AvailabilityZone, AvailabilityZoneId } }) =>
          textOf(AvailabilityZoneId ?? zonesOf(region).get(textOf(AvailabilityZone))),
        );
      const wrong = zones.find((zone) => zone === zonesWithoutVpcOrigins[region]);
      return wrong && `InvalidRequest: the VPC origin is in ${wrong}, which VPC origins do not support`;
    },
  },
  {
    id: 'alias-taken',
    types: ['AWS::CloudFront::Distribution'],
    source: `${documentation}AmazonCloudFront/latest/DeveloperGuide/CNAMEs.html`,
    check({ properties, type }, { account, stackId }) {
      const names = aliasesOf(properties);
      const taken = account.standing.find(
        (other) =>
          other.type === type &&
          other.owner !== stackId &&
          aliasesOf(other.properties).some((name) => names.includes(name)),
      );
      if (taken === undefined) return undefined;
      return `CNAMEAlreadyExists: One or more of the CNAMEs you provided are already associated with a different resource (${taken.physicalId})`;
    },
  },
];
