/** The names of resources, and their values of `Ref` and `Fn::GetAtt`, by type. */
import { createHash } from 'node:crypto';

export interface Place {
  account: string;
  region: string;
}

export interface Identity extends Place {
  /** The name in the template, or else one that CloudFormation would generate. */
  name: string;
  type: string;
}

interface Kind {
  /** The property that names the resource; names are unique. Absent if AWS chooses the id. */
  name?: string;
  /** The maximum length; CloudFormation truncates generated names. */
  longest?: number;
  /** The name is unique in the account (`account`) or in all of AWS (`world`), not in a region. */
  unique?: 'account' | 'world';
  arn?: (identity: Identity) => string;
  ref?: 'arn';
  attributes?: (identity: Identity) => Record<string, string>;
}

const within =
  (service: string, path: string) =>
  ({ region, account, name }: Identity): string =>
    `arn:aws:${service}:${region}:${account}:${path}${name}`;
const global =
  (service: string, path: string) =>
  ({ account, name }: Identity): string =>
    `arn:aws:${service}::${account}:${path}${name}`;

/** Types without a line here have an id that AWS chooses and an ARN of the common form. */
const kinds: Record<string, Kind> = {
  'AWS::ApiGateway::DomainName': {
    name: 'DomainName',
    attributes: ({ name, region }) => ({
      RegionalDomainName: `d-${name.length}.execute-api.${region}.amazonaws.com`,
      RegionalHostedZoneId: 'Z0123456789EXECUTE',
    }),
  },
  'AWS::Backup::BackupPlan': { arn: within('backup', 'backup-plan:') },
  'AWS::Backup::BackupVault': {
    name: 'BackupVaultName',
    longest: 50,
    arn: within('backup', 'backup-vault:'),
  },
  'AWS::Budgets::Budget': {
    name: 'Budget.BudgetName',
    unique: 'account',
    arn: global('budgets', 'budget/'),
  },
  'AWS::CloudFront::CachePolicy': { name: 'CachePolicyConfig.Name', unique: 'account' },
  'AWS::CloudFront::Distribution': {
    arn: global('cloudfront', 'distribution/'),
    attributes: ({ name }) => ({ DomainName: `${name.toLowerCase()}.cloudfront.net`, Id: name }),
  },
  'AWS::CloudFront::Function': {
    name: 'Name',
    unique: 'account',
    ref: 'arn',
    arn: global('cloudfront', 'function/'),
    attributes: (identity) => ({ FunctionARN: global('cloudfront', 'function/')(identity) }),
  },
  'AWS::CloudFront::VpcOrigin': { attributes: ({ name }) => ({ Id: name }) },
  'AWS::CloudWatch::Alarm': { name: 'AlarmName', longest: 255, arn: within('cloudwatch', 'alarm:') },
  'AWS::CloudWatch::Dashboard': {
    name: 'DashboardName',
    unique: 'account',
    arn: global('cloudwatch', 'dashboard/'),
  },
  'AWS::CodeDeploy::Application': { name: 'ApplicationName', longest: 100 },
  'AWS::CodeDeploy::DeploymentGroup': { name: 'DeploymentGroupName', longest: 100 },
  'AWS::DynamoDB::GlobalTable': table(),
  'AWS::DynamoDB::Table': table(),
  'AWS::EC2::SecurityGroup': { attributes: ({ name }) => ({ GroupId: name }) },
  'AWS::ECS::Cluster': { name: 'ClusterName', arn: within('ecs', 'cluster/') },
  // Uses the service's name for its cluster: both start with the same prefix.
  'AWS::ECS::Service': {
    name: 'ServiceName',
    arn: ({ name, ...place }) => within('ecs', `service/${name}/`)({ ...place, name }),
    attributes: ({ name }) => ({ Name: name }),
  },
  'AWS::ECS::TaskDefinition': {
    name: 'Family',
    ref: 'arn',
    arn: (identity) => `${within('ecs', 'task-definition/')(identity)}:1`,
  },
  'AWS::ElasticLoadBalancingV2::Listener': balancing('listener/app/'),
  'AWS::ElasticLoadBalancingV2::LoadBalancer': balancing('loadbalancer/app/'),
  'AWS::ElasticLoadBalancingV2::TargetGroup': balancing('targetgroup/'),
  'AWS::Events::Rule': { name: 'Name', longest: 64, arn: within('events', 'rule/') },
  'AWS::IAM::ManagedPolicy': {
    name: 'ManagedPolicyName',
    longest: 128,
    unique: 'account',
    ref: 'arn',
    arn: global('iam', 'policy/'),
    attributes: (identity) => ({ PolicyArn: global('iam', 'policy/')(identity) }),
  },
  'AWS::IAM::Role': {
    name: 'RoleName',
    longest: 64,
    unique: 'account',
    arn: global('iam', 'role/'),
    attributes: ({ name }) => ({ RoleId: `AROA${name.length}` }),
  },
  'AWS::KMS::Alias': { name: 'AliasName', arn: within('kms', '') },
  'AWS::KMS::Key': {
    arn: within('kms', 'key/'),
    attributes: ({ name }) => ({ KeyId: name }),
  },
  'AWS::Lambda::Function': { name: 'FunctionName', longest: 64, arn: within('lambda', 'function:') },
  'AWS::Logs::LogGroup': {
    name: 'LogGroupName',
    longest: 512,
    arn: (identity) => `${within('logs', 'log-group:')(identity)}:*`,
  },
  'AWS::S3::Bucket': {
    name: 'BucketName',
    longest: 63,
    unique: 'world',
    arn: ({ name }) => `arn:aws:s3:::${name}`,
    attributes: ({ name, region }) => ({
      DomainName: `${name}.s3.amazonaws.com`,
      RegionalDomainName: `${name}.s3.${region}.amazonaws.com`,
    }),
  },
  'AWS::SNS::Topic': {
    name: 'TopicName',
    longest: 256,
    ref: 'arn',
    arn: within('sns', ''),
    attributes: (identity) => ({ TopicArn: within('sns', '')(identity), TopicName: identity.name }),
  },
  'AWS::SecretsManager::Secret': {
    name: 'Name',
    ref: 'arn',
    arn: (identity) => `${within('secretsmanager', 'secret:')(identity)}-AbCdEf`,
    attributes: (identity) => ({ Id: `${within('secretsmanager', 'secret:')(identity)}-AbCdEf` }),
  },
  'AWS::WAFv2::WebACL': {
    name: 'Name',
    longest: 128,
    arn: (identity) => `${within('wafv2', 'global/webacl/')(identity)}/0a1b2c3d-0000-4000-8000-000000000000`,
  },
};

function balancing(path: string): Kind {
  return {
    // Listeners have no name, but their ARN contains the balancer's, which also starts with the stack's name.
    name: 'Name',
    longest: 32,
    ref: 'arn',
    arn: (identity) => `${within('elasticloadbalancing', path)(identity)}/0a1b2c3d4e5f6071`,
    attributes: ({ name, region }) => ({
      DNSName: `internal-${name}.${region}.elb.amazonaws.com`,
      LoadBalancerFullName: `app/${name}/0a1b2c3d4e5f6071`,
    }),
  };
}

function table(): Kind {
  const arn = within('dynamodb', 'table/');
  return {
    name: 'TableName',
    longest: 255,
    arn,
    attributes: (identity) => ({ StreamArn: `${arn(identity)}/stream/2026-11-22T00:00:00.000` }),
  };
}

/** Id prefixes of a network's parts, which the schemas of referring resources require. */
const networkIds: Record<string, string> = {
  'AWS::EC2::InternetGateway': 'igw',
  'AWS::EC2::RouteTable': 'rtb',
  'AWS::EC2::SecurityGroup': 'sg',
  'AWS::EC2::Subnet': 'subnet',
  'AWS::EC2::VPC': 'vpc',
};

const serviceOf = (type: string): string => (type.split('::')[1] ?? '').toLowerCase();

/** `Budget.BudgetName` of the properties, if the template sets it. */
export function namedBy(type: string, properties: Record<string, unknown>): unknown {
  const path = kinds[type]?.name?.split('.') ?? [];
  const found = path.reduce<unknown>(
    (value, key) => (value as Record<string, unknown> | undefined)?.[key],
    properties,
  );
  return path.length === 0 ? undefined : found;
}

export const isNamedType = (type: string): boolean => kinds[type]?.name !== undefined;

/** The scope in which a name is unique: the region, the account or all of AWS. */
export const namespaceOf = (type: string, { account, region }: Place): string => {
  const unique = kinds[type]?.unique;
  if (unique === 'world') return 'aws';
  return unique === 'account' ? account : `${account} ${region}`;
};

/** `relay-Functionschat-1A2B3C4D5E6F`, truncated as CloudFormation does it; AWS ids are upper case. */
export function madeName(type: string, { stack, id, salt }: Record<'stack' | 'id' | 'salt', string>): string {
  const mark = createHash('sha256').update(`${salt} ${id}`).digest('hex').toUpperCase().slice(0, 12);
  const kind = kinds[type];
  const ofNetwork = networkIds[type];
  if (ofNetwork !== undefined) return `${ofNetwork}-0${mark.toLowerCase()}0a1b`;
  if (type === 'AWS::CloudFront::Distribution') return `E${mark}`;
  if (kind?.name === undefined) return `${mark.slice(0, 8)}-0000-4000-8000-${mark}`.toLowerCase();
  // Only names of secrets omit the stack.
  const prefix = type === 'AWS::SecretsManager::Secret' ? id : `${stack}-${id}`;
  const whole = prefix.slice(0, (kind.longest ?? 128) - mark.length - 1);
  const name = `${whole}-${mark}`;
  return type === 'AWS::S3::Bucket' ? name.toLowerCase() : name;
}

export function arnOf(identity: Identity): string {
  const made = kinds[identity.type]?.arn;
  const resource = (identity.type.split('::')[2] ?? '').toLowerCase();
  return made === undefined ? within(serviceOf(identity.type), `${resource}/`)(identity) : made(identity);
}

export const referenceOf = (identity: Identity): string =>
  kinds[identity.type]?.ref === 'arn' ? arnOf(identity) : identity.name;

/** The value of `Fn::GetAtt`, or undefined if the double does not know the attribute. */
export function attributeOf(identity: Identity, attribute: string): string | undefined {
  if (attribute === 'Arn') return arnOf(identity);
  return kinds[identity.type]?.attributes?.(identity)[attribute];
}
