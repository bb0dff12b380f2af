/**
 * The role with which CloudFormation creates resources: the calls that a change needs, and whether the policies of
 * docs/deploy.md allow them. Every change requires all calls of a type's handlers, because the schemas do not say which
 * values need which.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { emptyAccount as account } from './account.ts';
import { allows } from './rules/policies.ts';
import type { Action, Resource } from './template.ts';

/**
 * Of CloudFormation's published schemas, August 2026: what creating, reading, updating and deleting one of a type calls. The
 * schemas of budgets, records and deployment groups name no calls; theirs are of the user guides. Two sets stand in no schema
 * and were found in the guides of the services: `GetApplicationRevision` and `RegisterApplicationRevision` of an alias that
 * CodeDeploy moves (CodeDeploy, "permissions reference": a deployment registers its AppSpec first), and `GetBucketAcl` and
 * `PutBucketAcl` of a distribution with a log (CloudFront, "API permissions"). Those of API Gateway, and of an ACL before a
 * stage, are of the service authorization references of API Gateway and WAF.
 */
const handlerActions = JSON.parse(
  readFileSync(join(import.meta.dirname, '..', 'handler-actions.json'), 'utf8'),
) as Record<string, string[]>;

/** Calls of handlers for properties that no relay sets; with a type, only its handlers' calls. */
const unused: [RegExp, string, string?][] = [
  [/^application-autoscaling:/, 'tables are on demand', 'AWS::DynamoDB::GlobalTable'],
  [/^cloudwatch:PutMetricData$/, 'tables are on demand'],
  [/^cloudwatch:GetMetricData$/, 'nothing is predicted'],
  [
    /^(lambda:|application-autoscaling:.*ScheduledAction)/,
    'tasks follow a metric',
    'AWS::ApplicationAutoScaling::ScalableTarget',
  ],
  [/^ecs:(PutAccountSetting|PutClusterCapacity|UpdateClusterSettings)/, 'a cluster as it is by default'],
  [/^iam:PassRole$/, 'the service has the role of ECS', 'AWS::ECS::Service'],
  [/^(cognito-idp:|elasticloadbalancing:.*(CapacityReservation|IpPools|IpAddressType))/, 'a plain balancer'],
  [/^ec2:(.*VpnGateway|.*SubnetCidrBlock|CreateVpcEncryptionControl|ModifyVpcTenancy)$/, 'a plain network'],
  [/^(vpc-lattice|vpce|sts):/, 'a gateway to tables, one account'],
  [
    /^dynamodb:(BatchWriteItem|DeleteItem|GetItem|PutItem|Query|Scan|UpdateItem)$/,
    'a replica in a second region',
  ],
  [/^iam:CreateServiceLinkedRole$/, 'a replica in a second region', 'AWS::DynamoDB::GlobalTable'],
  [/^(kinesis:|dynamodb:.*Kinesis)/, 'no stream goes to Kinesis'],
  [/^kms:/, 'filters are encrypted by AWS', 'AWS::Lambda::EventSourceMapping'],
  [/^kms:ListAliases$/, 'the key of tables is given by its ARN'],
  [/^(logs|s3):.*Kms/, 'keys are those of AWS'],
  [
    /^(elasticfilesystem|s3files):|^ec2:DescribeNetworkInterfaces$/,
    'no file system',
    'AWS::Lambda::Function',
  ],
  [
    /^lambda:(GetCodeSigningConfig|GetLayerVersion|PassCapacityProvider)$/,
    'no layers, no signing, no instances',
  ],
  [/^iam:.*(Group|User)Policy$/, 'policies are those of roles'],
  [/^iam:(At|De)tachRolePolicy$/, 'those of operators are attached by people', 'AWS::IAM::ManagedPolicy'],
  [/^cloudfront:.*(ConnectionGroup|StagingConfig)$/, 'one distribution'],
  [
    /^(cloudfront:.*VpcOrigin|ec2:.*|elasticloadbalancing:.*)$/,
    'origins are resources',
    'AWS::CloudFront::Distribution',
  ],
  [/^(s3tables:|s3:.*(Metadata|Table))/, 'one bucket of objects'],
  [
    /^s3:(Put|Delete)(Bucket)?(Accelerate|Analytics|Abac|Acl|CORS|Cors|Logging|Metrics|Notification|Object|Replication|Versioning|Website|Intelligent|Inventory)/i,
    'one bucket without these',
    'AWS::S3::Bucket',
  ],
  [/^s3:REST/, 'no action of IAM'],
  [
    /^(firehose:|logs:.*(Delivery|Index|DataProtection|ResourcePolicy|Bearer|DeletionProtection))/,
    'a plain log group',
  ],
  [/^secretsmanager:(Replicate|Remove)/, 'secrets of one region'],
  [/^sns:PutDataProtectionPolicy$/, 'a topic without one'],
];

/** Types whose handlers call IAM for properties that the relay sets. */
const callsIam = new Set([
  'AWS::ApplicationAutoScaling::ScalableTarget',
  'AWS::Backup::BackupSelection',
  'AWS::CloudFront::VpcOrigin',
  'AWS::CodeDeploy::DeploymentGroup',
  'AWS::ECS::Cluster',
  'AWS::ECS::TaskDefinition',
  'AWS::IAM::ManagedPolicy',
  'AWS::IAM::Policy',
  'AWS::IAM::Role',
  'AWS::Lambda::Function',
]);

const shiftOf = ({ updatePolicy }: Pick<Resource, 'updatePolicy'>) =>
  updatePolicy['CodeDeployLambdaAliasUpdate'] as Record<string, string> | undefined;

/** A customer-managed key that encrypts a table. */
const keyOf = ({ properties }: Pick<Resource, 'properties'>): string | undefined =>
  ((properties['EncryptionKeyArn'] ?? properties['KmsKeyArn']) as string | undefined) ??
  (properties['Replicas'] as { SSESpecification?: { KMSMasterKeyId?: string } }[] | undefined)?.[0]
    ?.SSESpecification?.KMSMasterKeyId;

/** The bucket of CloudFront's log: `name.s3.us-east-1.amazonaws.com`. */
const logBucketOf = ({ properties }: Pick<Resource, 'properties'>): string | undefined =>
  (properties['DistributionConfig'] as { Logging?: { Bucket?: string } } | undefined)?.Logging?.Bucket?.split(
    '.s3.',
  )[0];

/** A call of the role and the ARN of its target; `*` if IAM defines no resource for it. */
export interface RoleCall {
  action: string;
  target: string;
}

/** @param change CodeDeploy is called when an alias moves, not when it is created */
export function callsFor(resource: Resource, change: Action): RoleCall[] {
  const { type, updatePolicy } = resource;
  const actions = handlerActions[type] ?? [`no actions of ${type} in handler-actions.json`];
  return actions
    .filter(
      (action) =>
        (!action.startsWith('kms:') || keyOf(resource) !== undefined) &&
        !unused.some(([pattern, , only = type]) => only === type && pattern.test(action)) &&
        (!action.startsWith('iam:') || callsIam.has(type)) &&
        (type !== 'AWS::Lambda::Function' ||
          !action.startsWith('ec2:') ||
          resource.properties['VpcConfig'] !== undefined) &&
        (type !== 'AWS::CloudFront::Distribution' ||
          !action.startsWith('s3:') ||
          logBucketOf(resource) !== undefined) &&
        (type !== 'AWS::Lambda::Alias' ||
          !action.startsWith('codedeploy:') ||
          (shiftOf({ updatePolicy }) !== undefined && change === 'Modify')),
    )
    .map((action) => ({ action, target: targetOf(action, resource) }));
}

/** Actions without resource types in the service authorization reference: a policy must use `*`. */
const withoutResource = new Set([
  'backup-storage:MountCapsule',
  'cloudfront:CreateCachePolicy',
  'cloudfront:CreateDistribution',
  'cloudfront:CreateFunction',
  'codedeploy:StopDeployment',
  'ecs:CreateCluster',
  'ecs:DeregisterTaskDefinition',
  'ecs:DescribeTaskDefinition',
  'ec2:DescribeSecurityGroups',
  'ec2:DescribeSubnets',
  'ec2:DescribeVpcs',
  'lambda:CreateEventSourceMapping',
  'logs:DeleteQueryDefinition',
  'logs:DescribeLogGroups',
  'logs:DescribeQueryDefinitions',
  'logs:DescribeResourcePolicies',
  'logs:PutQueryDefinition',
  'secretsmanager:GetRandomPassword',
]);

/** Services whose role AWS creates with the account's first resource of a type. */
const linkedService: Record<string, string> = {
  'AWS::ApplicationAutoScaling::ScalableTarget': 'ecs.application-autoscaling.amazonaws.com',
  'AWS::CloudFront::VpcOrigin': 'vpcorigin.cloudfront.amazonaws.com',
  'AWS::ECS::Cluster': 'ecs.amazonaws.com',
};

/** The target of a call for a resource, if it is not the resource itself. */
function targetOf(action: string, resource: Resource): string {
  if (withoutResource.has(action) || /^(ec2|elasticloadbalancing):Describe/.test(action)) return '*';
  const { type, properties, arn } = resource;
  const first = (value: unknown): string => String([value].flat()[0]);
  if (action.startsWith('codedeploy:')) return targetOfShift(action, resource);
  if (action === 'apigateway:SetWebACL') return first(properties['ResourceArn']);
  if (type === 'AWS::WAFv2::WebACLAssociation' || properties['Scope'] === 'REGIONAL')
    return first(properties['WebACLArn'] ?? arn).replace(':global/', ':regional/');
  if (action.startsWith('apigateway:')) return targetOfApi(resource);
  if (action.startsWith('kms:')) return keyOf(resource) ?? '';
  if (action === 'iam:CreateServiceLinkedRole')
    return `arn:aws:iam::000000000000:role/aws-service-role/${linkedService[type]}/AWSServiceRole`;
  if (action.startsWith('cloudwatch:') && type === 'AWS::ApplicationAutoScaling::ScalableTarget')
    return `arn:aws:cloudwatch:us-east-1:000000000000:alarm:TargetTracking-${first(properties['ResourceId'])}-AlarmHigh`;
  if (type.startsWith('Custom::')) return first(properties['ServiceToken']);
  if (action.startsWith('s3:GetObject') && type === 'AWS::Lambda::Function')
    return 'arn:aws:s3:::cdk-hnb659fds-assets-000000000000-us-east-1/bundle.zip';
  if (action.startsWith('s3:') && type === 'AWS::CloudFront::Distribution')
    return `arn:aws:s3:::${logBucketOf(resource)}`;
  const selection = properties['BackupSelection'] as { IamRoleArn?: string } | undefined;
  if (type === 'AWS::Backup::BackupSelection' && !action.startsWith('iam:'))
    return `arn:aws:backup:us-east-1:000000000000:backup-plan:${first(properties['BackupPlanId'])}`;
  if (selection) return String(selection.IamRoleArn);
  if (action === 'iam:PassRole' || (action === 'iam:GetRole' && type === 'AWS::ECS::TaskDefinition'))
    return first(
      properties['Role'] ??
        properties['ServiceRoleArn'] ??
        properties['RoleARN'] ??
        properties['TaskRoleArn'],
    );
  if (type === 'AWS::IAM::Policy') return `arn:aws:iam::000000000000:role/${first(properties['Roles'])}`;
  if (type === 'AWS::Lambda::Permission') return first(properties['FunctionName']);
  if (type === 'AWS::Lambda::EventInvokeConfig')
    return `arn:aws:lambda:us-east-1:000000000000:function:${first(properties['FunctionName'])}`;
  if (type === 'AWS::S3::BucketPolicy') return `arn:aws:s3:::${first(properties['Bucket'])}`;
  if (type === 'AWS::Logs::MetricFilter')
    return `arn:aws:logs:us-east-1:000000000000:log-group:${first(properties['LogGroupName'])}`;
  if (type === 'AWS::SNS::TopicPolicy') return first(properties['Topics']);
  if (type === 'AWS::Route53::RecordSet')
    return action === 'route53:GetChange'
      ? 'arn:aws:route53:::change/C1'
      : `arn:aws:route53:::hostedzone/${first(properties['HostedZoneId'])}`;
  return type === 'AWS::SNS::Subscription' ? first(properties['TopicArn']) : arn;
}

/** A new resource is addressed by its collection, because a policy can't know its id. */
function targetOfApi({ type, properties, physicalId }: Resource): string {
  const { RestApiId, DomainName } = properties as Record<string, string>;
  const path = {
    'AWS::ApiGateway::BasePathMapping': `domainnames/${DomainName}/basepathmappings/any`,
    'AWS::ApiGateway::Deployment': `restapis/${RestApiId}/deployments/${physicalId}`,
    'AWS::ApiGateway::DomainName': `domainnames/${DomainName}`,
    'AWS::ApiGateway::Stage': `restapis/${RestApiId}/stages/relay`,
  }[type];
  return `arn:aws:apigateway:us-east-1::/${path ?? `restapis/${physicalId}`}`;
}

/** A moving alias calls CodeDeploy for the deployment group that its update policy names. */
function targetOfShift(action: string, resource: Resource): string {
  const { physicalId, properties, type } = resource;
  const arnOf = (path: string): string => `arn:aws:codedeploy:us-east-1:000000000000:${path}`;
  if (type === 'AWS::CodeDeploy::Application') return arnOf(`application:${physicalId}`);
  if (type === 'AWS::CodeDeploy::DeploymentGroup')
    return arnOf(`deploymentgroup:${String(properties['ApplicationName'])}/${physicalId}`);
  if (action === 'codedeploy:GetDeploymentConfig')
    return arnOf('deploymentconfig:CodeDeployDefault.LambdaCanary10Percent5Minutes');
  const { ApplicationName, DeploymentGroupName } = shiftOf(resource) ?? {};
  if (action.endsWith('ApplicationRevision')) return arnOf(`application:${String(ApplicationName)}`);
  return arnOf(`deploymentgroup:${String(ApplicationName)}/${String(DeploymentGroupName)}`);
}

/** The policies that the pages link to. */
export const policyPages = ['functions', 'data-and-edge', 'servers', 'backup-copies', 'api'].map(
  (subject) => `deployer-policy-${subject}.json`,
);

export interface PolicyDocument {
  Statement: Record<string, unknown>[];
}

const documents = join(import.meta.dirname, '..', '..', '..', 'docs');
export const readPolicy = (page: string): PolicyDocument =>
  JSON.parse(readFileSync(join(documents, page), 'utf8')) as PolicyDocument;

export class ExecutionRole {
  readonly policy: PolicyDocument;
  readonly #denied: string | undefined;

  /** @param denied an action that is denied whatever the policies allow */
  constructor(pages: readonly PolicyDocument[] = policyPages.map(readPolicy), denied?: string) {
    this.policy = { Statement: pages.flatMap(({ Statement }) => Statement) };
    this.#denied = denied;
  }

  allows({ action, target }: RoleCall): boolean {
    return action !== this.#denied && allows({ ...this.policy }, action, target);
  }

  /** The failure that CloudFormation reports for a change that the role may not make. */
  refusal(resource: Resource, change: Action): string | undefined {
    const refused = callsFor(resource, change).find((call) => !this.allows(call));
    return (
      refused &&
      `AccessDenied: User: arn:aws:sts::${account}:assumed-role/cdk-hnb659fds-cfn-exec-role-${account}/AWSCloudFormation is not authorized to perform: ${refused.action} on resource: ${refused.target}`
    );
  }
}
