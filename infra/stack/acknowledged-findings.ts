/**
 * Accepted findings of scanners, each with its reason. A finding of cdk-nag's AwsSolutions that is not listed here fails the synthesis. The
 * findings of three more packs are listed for apps that use them and for a test, because the reasons belong to the construct. Scanners
 * that read templates find the names of their rules in the metadata of resources; docs/scanners.md lists their results.
 */
import * as cdk from 'aws-cdk-lib';
import { CfnElement, CfnResource, Stack, type Acknowledgment, Token } from 'aws-cdk-lib';
import type { ITopic } from 'aws-cdk-lib/aws-sns';
import type { IConstruct } from 'constructs';
import { secretPurposes } from '../../shared/config/rows/secret-reference.ts';
import { functionDescriptions } from './constructs/function-descriptions.ts';
import { accountOf, hasUnknownKey } from './constructs/operator-policies.ts';
import type { RelayFunctions } from './constructs/relay-functions.ts';
import { type Triggers, findEmptyingProvider } from './constructs/triggers.ts';
import type { RelayTables } from './constructs/relay-tables.ts';
import type { RelayService } from './constructs/relay-service.ts';
import type { ShiftRole } from './rollout.ts';

interface AcknowledgedConstructs {
  relayName: string;
  tables: RelayTables;
  functions: RelayFunctions;
  originSecrets: IConstruct | undefined;
  sealKeys: IConstruct;
  distribution: IConstruct | undefined;
  /** The front door: the distribution, or the API that clients call. */
  api: IConstruct | undefined;
  operatorPolicies: IConstruct;
  triggers: Triggers;
  shiftRoles: readonly ShiftRole[];
  /** Present with compute `ecs`. */
  service: RelayService | undefined;
  /** True if functions run in a VPC. */
  inVpc: boolean;
  canary?: IConstruct | undefined;
  console?: IConstruct | undefined;
  backup?: IConstruct | undefined;
  alarms: IConstruct;
  /** The topic of alarms and notices. */
  topic?: ITopic | undefined;
  /** The access log's bucket, if the stack creates one. */
  ownLog?: IConstruct | undefined;
}

/**
 * Maps rules to reasons: `own` for AwsSolutions, `listed` for HIPAA Security and NIST 800-53 revisions 4 and 5, `scanned` for rules that only these scanners have: see
 * `scannerNames`.
 */
interface Reasons {
  own?: Readonly<Record<string, string>>;
  listed?: Readonly<Record<string, string>>;
  scanned?: Readonly<Record<string, string>>;
}

/**
 * For each rule, the type of resource that it checks, and its names in checkov (`CKV_`) and in AWS's rules registry for CloudFormation Guard.
 */
const scannerNames: Readonly<Record<string, string | readonly string[]>> = {
  SecretsManagerRotationEnabled: 'SecretsManager::Secret SECRETSMANAGER_ROTATION_ENABLED_CHECK',
  SecretsManagerUsingKMSKey: 'SecretsManager::Secret CKV_AWS_149 SECRETSMANAGER_USING_CMK',
  APIG1: 'ApiGateway::Stage CKV_AWS_76 API_GW_STAGE_ACCESS_LOGGING_RULE',
  APIGWCacheEnabledAndEncrypted: 'ApiGateway::Stage CKV_AWS_120',
  APIGWXrayEnabled: 'ApiGateway::Stage CKV_AWS_73',
  CFR2: 'CloudFront::Distribution CKV_AWS_68',
  CFR3: 'CloudFront::Distribution CKV_AWS_86 CLOUDFRONT_ACCESSLOGS_ENABLED',
  CFR4: 'CloudFront::Distribution CKV_AWS_174 CLOUDFRONT_CUSTOM_SSL_CERTIFICATE CLOUDFRONT_MINIMUM_PROTOCOL_VERSION_RULE CLOUDFRONT_SNI_ENABLED',
  OneOrigin: 'CloudFront::Distribution CLOUDFRONT_ORIGIN_FAILOVER_ENABLED',
  NoRootObject: 'CloudFront::Distribution CLOUDFRONT_DEFAULT_ROOT_OBJECT_CONFIGURED',
  CloudWatchLogGroupEncrypted: 'Logs::LogGroup CKV_AWS_158 CLOUDWATCH_LOG_GROUP_ENCRYPTED',
  LambdaConcurrency: 'Lambda::Function CKV_AWS_115 LAMBDA_CONCURRENCY_CHECK',
  LambdaDLQ: 'Lambda::Function CKV_AWS_116 LAMBDA_DLQ_CHECK',
  LambdaInsideVPC: 'Lambda::Function CKV_AWS_117 LAMBDA_INSIDE_VPC',
  LambdaVariablesKey: 'Lambda::Function CKV_AWS_173',
  LambdaFunctionPublicAccessProhibited: [
    'Lambda::Url CKV_AWS_258',
    'Lambda::Permission LAMBDA_FUNCTION_PUBLIC_ACCESS_PROHIBITED LAMBDA_NO_WILDCARD_PRINCIPALS LAMBDA_PERMISSION_INVOKE_FUNCTION_ACTION',
  ],
  WildcardResource: [
    'IAM::Policy IAM_POLICYDOCUMENT_NO_WILDCARD_RESOURCE',
    'IAM::ManagedPolicy IAM_POLICYDOCUMENT_NO_WILDCARD_RESOURCE',
  ],
  Recovery: 'DynamoDB::GlobalTable CKV_AWS_165',
  S3BucketLoggingEnabled: 'S3::Bucket CKV_AWS_18 S3_BUCKET_LOGGING_ENABLED',
  S3BucketReplicationEnabled: 'S3::Bucket S3_BUCKET_REPLICATION_ENABLED',
  S3BucketVersioningEnabled: 'S3::Bucket CKV_AWS_21 S3_BUCKET_VERSIONING_ENABLED',
  S3BucketDefaultLockEnabled: 'S3::Bucket S3_BUCKET_DEFAULT_LOCK_ENABLED',
  BucketPolicyUnseen: [
    'S3::Bucket S3_BUCKET_NO_PUBLIC_RW_ACL',
    'S3::BucketPolicy S3_BUCKET_SSL_REQUESTS_ONLY',
  ],
  CloudWatchAlarmAction: 'CloudWatch::Alarm CLOUDWATCH_ALARM_ACTION_CHECK',
  SNSEncryptedKMS: 'SNS::Topic CKV_AWS_26 SNS_ENCRYPTED_KMS',
  NoManagedRules: 'WAFv2::WebACL CKV_AWS_192',
  EC23: 'EC2::SecurityGroup CKV_AWS_260 EC2_SECURITY_GROUP_INGRESS_OPEN_TO_WORLD_RULE SECURITY_GROUP_INGRESS_CIDR_NON_32_RULE SECURITY_GROUP_MISSING_EGRESS_RULE',
  UpstreamsAnywhere:
    'EC2::SecurityGroup EC2_SECURITY_GROUP_EGRESS_OPEN_TO_WORLD_RULE SECURITY_GROUP_EGRESS_ALL_PROTOCOLS_RULE',
  VPCNoUnrestrictedRouteToIGW: 'EC2::Route NO_UNRESTRICTED_ROUTE_TO_IGW',
  ECS4: 'ECS::Cluster CKV_AWS_65',
  ELB2: 'ElasticLoadBalancingV2::LoadBalancer CKV_AWS_91 ELBV2_ACCESS_LOGGING_RULE',
  ELBDeletionProtectionEnabled: 'ElasticLoadBalancingV2::LoadBalancer ELB_DELETION_PROTECTION_ENABLED',
  ELBv2ACMCertificateRequired:
    'ElasticLoadBalancingV2::Listener CKV_AWS_2 CKV_AWS_103 ELBV2_LISTENER_PROTOCOL_RULE ELBV2_LISTENER_SSL_POLICY_RULE',
};

const ownKey = 'Encrypted by a key that AWS manages, unless encryptionKeys names one of yours';
const noResource = 'These actions have no resources, or none that is known before the call';
const oneRole = 'Belongs to one role; a managed policy could be attached to others';
const noAcl =
  'Every billed call needs a key, and keys have limits; an ACL costs a monthly fee. The option webAcl creates one or uses yours';
const oneLine = 'The functions log one line per request, without headers, which may contain keys';
const inside =
  'The load balancer has only private addresses, and servers reject requests without the origin secret';
const noFlows =
  'Only tasks are in this VPC, and only the load balancer can reach them; flow logs would cost more than the tasks';

/** Findings to acknowledge on a construct and everything below it, by the kind of construct. */
const reasons = {
  secrets: {
    own: { SMG4: 'Rotated by a deployment with a new number: its users read it only during deployments' },
    listed: {
      SecretsManagerRotationEnabled:
        'Rotated by deploying with a new number: CloudFront and functions need both for some time',
      SecretsManagerUsingKMSKey: ownKey,
    },
  },
  api: {
    own: {
      APIG1: `${oneLine}; a log of API Gateway needs a role for the whole account and region`,
      APIG2: 'The functions validate each request, and answer errors in the form of the API',
      APIG3: noAcl,
      APIG6: oneLine,
    },
    listed: {
      APIGWAssociatedWithWAF: noAcl,
      APIGWCacheEnabledAndEncrypted: 'Answers belong to one customer, so nothing is cached',
      APIGWExecutionLoggingEnabled: oneLine,
      APIGWSSLEnabled: 'A client certificate is for HTTP backends; functions are called with IAM',
      APIGWXrayEnabled: 'Traces of calls are sent to the receiver of the option tracing',
    },
  },
  distribution: {
    own: {
      CFR1: 'The operator decides which countries may use a relay, not this stack',
      CFR2: noAcl,
      CFR3: 'A second log would store client addresses, so it is an option',
      CFR4: 'Without a domain, CloudFront sets the policy of its own certificate; with one, the minimum is TLS 1.2 (2021)',
    },
    scanned: {
      OneOrigin: 'A second origin could repeat a call that was already answered and charged',
      NoRootObject: 'Functions answer every path',
    },
  },
  functions: {
    listed: {
      IAMNoInlinePolicy: oneRole,
      CloudWatchLogGroupEncrypted: ownKey,
      LambdaConcurrency:
        'The options reservedConcurrency and moneyConcurrency reserve it, which reduces the concurrency of all other functions of the account',
      LambdaDLQ:
        'Failed records and events are stored in the bucket of stream failures, and schedules run again; nothing else is invoked asynchronously',
      LambdaInsideVPC: 'Function URLs do not stream from a VPC; DynamoDB and upstreams have public endpoints',
      LambdaFunctionPublicAccessProhibited:
        'The URLs are public, because client SDKs do not sign for IAM; functions reject requests without the origin secret',
    },
    scanned: {
      LambdaVariablesKey: ownKey,
    },
  },
  wildcards: { scanned: { WildcardResource: noResource } },
  responses: {
    scanned: {
      Recovery: 'Stored responses expire within 30 days; every other table has point-in-time recovery',
    },
  },
  triggers: { listed: { CloudWatchLogGroupEncrypted: ownKey } },
  buckets: {
    own: { S1: 'Only the account can read it; the account decides whether to log access' },
    listed: {
      S3DefaultEncryptionKMS: ownKey,
      S3BucketLoggingEnabled: 'Only the account can read it; the account decides whether to log access',
      S3BucketReplicationEnabled: 'Expires within weeks, and its content is also in tables and logs',
      S3BucketVersioningEnabled: 'AWS writes each object once, under a unique name',
      S3BucketDefaultLockEnabled: 'Expires within weeks; only the account can delete objects',
    },
    scanned: {
      BucketPolicyUnseen: 'Object ownership disables ACLs, and the bucket policy denies plain HTTP',
    },
  },
  roles: { listed: { IAMNoInlinePolicy: oneRole }, scanned: { WildcardResource: noResource } },
  service: {
    own: {
      EC23: inside,
      ECS2: 'Only names, numbers and the stack’s id; secrets come from Secrets Manager',
      ECS4: 'The relay’s own metrics are enough for its alarms; Container Insights would cost more',
      ELB2: 'The servers log one line per request; a second log would store client addresses, so it is an option of CloudFront',
      VPC7: noFlows,
    },
    listed: {
      IAMNoInlinePolicy: oneRole,
      CloudWatchLogGroupEncrypted: ownKey,
      ALBHttpToHttpsRedirection: inside,
      ELBv2ACMCertificateRequired: inside,
      ALBWAFEnabled: inside,
      ELBLoggingEnabled: 'The servers log one line per request; a log of CloudFront is an option',
      ELBDeletionProtectionEnabled: 'Stores nothing, and the stack that creates it is protected itself',
      VPCFlowLogsEnabled: noFlows,
      VPCDefaultSecurityGroupClosed: 'Nothing uses this group; CDK would need a function to close it',
      VPCNoUnrestrictedRouteToIGW:
        'Upstreams can have any address; without NAT, tasks have public addresses that only the load balancer can reach',
    },
    scanned: { UpstreamsAnywhere: 'Upstreams can have any address', WildcardResource: noResource },
  },
  alarms: {
    listed: {
      CloudWatchAlarmAction: 'The operator sets the receivers; without any, synthesis warns',
      SNSEncryptedKMS: 'Messages name the alarm and no customer data; encryptionKeys.alarmTopic sets a key',
    },
  },
  edge: {
    listed: {
      WAFv2LoggingEnabled: 'A log of requests would contain headers, and so the keys of customers',
      CloudWatchAlarmAction: 'The operator sets the receivers',
      SNSEncryptedKMS: 'Messages name the alarm and no customer data',
    },
    scanned: {
      NoManagedRules:
        'Nothing behind it runs Java, and rules that search bodies for attacks would reject prompts about code',
    },
  },
} satisfies Record<string, Reasons>;

/** Acknowledges the accepted findings on their constructs. */
export function acknowledgeFindings(constructs: AcknowledgedConstructs): void {
  const { functions, operatorPolicies, ownLog, shiftRoles, canary, topic, service, backup } = constructs;
  const { failures } = constructs.triggers;
  acknowledge('wildcards', operatorPolicies, constructs.console);
  if (constructs.inVpc) acknowledge('wildcards', functions, canary);
  acknowledge('responses', constructs.tables.byName.responses);
  acknowledge('secrets', constructs.originSecrets, constructs.sealKeys);
  acknowledge('api', constructs.api);
  acknowledge('distribution', constructs.distribution);
  acknowledge('functions', functions, canary, constructs.console);
  acknowledge('triggers', constructs.triggers);
  acknowledge('buckets', failures, ownLog);
  acknowledge('roles', ...shiftRoles.map(({ role }) => role), backup);
  acknowledge('service', service);
  acknowledge('alarms', constructs.alarms);
  const stack = Stack.of(operatorPolicies);
  const partition = formatPlaceholder(stack.partition, 'Partition');
  const place = [
    formatPlaceholder(stack.region, 'Region'),
    formatPlaceholder(stack.account, 'AccountId'),
  ].join(':');
  const formatFindingArn = (what: string): string => `arn:${partition}:${what.replace(':', `:${place}:`)}`;
  const acknowledgeManaged = (policy: string, reason: string, of = partition): Acknowledgment =>
    finding(`IAM4[Policy::arn:${of}:iam::aws:policy/service-role/${policy}]`, reason);
  const { relayName } = constructs;
  const formatNamed = (paths: readonly string[]): Acknowledgment[] =>
    ['ssm:parameter/relay/', 'secretsmanager:secret:']
      .flatMap((store) => paths.map((path) => `${store}${relayName}/${path}`))
      .map((what) =>
        wildcard(
          formatFindingArn(what),
          "Operators choose the names of secrets; a function can only read those of its purpose under this stack's prefix",
        ),
      );
  const secrets = formatNamed(['*', ...secretPurposes.map((purpose) => `${purpose}/*`)]);
  for (const each of [operatorPolicies, ...(constructs.console ? [constructs.console] : [])])
    accept(
      each,
      ...secrets,
      wildcard('*', 'These actions have no resources; they read quotas and lists of models'),
      wildcard(
        formatFindingArn(`cloudformation:stack/${relayName}/*`),
        'AWS requires this resource if a stack is named without its id',
      ),
    );
  accept(
    operatorPolicies,
    wildcard(
      formatFindingArn(`dynamodb:table/${relayName}-restore-20*`),
      'The names of copies contain the time to which they are restored',
    ),
  );
  // CDK adds this provider to a stack with a bucket that empties itself.
  const provider = findEmptyingProvider(stack);
  if (provider)
    accept(
      provider,
      acknowledgeManaged(
        'AWSLambdaBasicExecutionRole',
        'Created by CDK for trials only: it empties the bucket of stream failures before the stack is deleted',
      ),
    );
  for (const { role, lambda } of shiftRoles)
    accept(
      role,
      wildcard('*', 'CodeDeploy only reads the states of alarms, by name'),
      wildcard(`<${logicalIdOf(lambda)}.Arn>:*`, 'Versions and aliases of one function'),
    );
  const ofInterfaces = constructs.inVpc
    ? [
        wildcard(
          '*',
          'Lambda creates the network interfaces of a function, so their ids are not known before',
        ),
      ]
    : [];
  if (canary) accept(canary, ...secrets, ...ofInterfaces);
  if (backup)
    accept(
      backup,
      acknowledgeManaged(
        'AWSBackupServiceRolePolicyForBackup',
        'The policy that the guide of AWS Backup requires; AWS updates it with the service',
        '<AWS::Partition>',
      ),
    );
  if (service) accept(service, ...secrets, wildcard('*', 'The login token of ECR has no resource'));
  for (const [name, relayFunction] of functions.byName) {
    const { streams, eventSecondsMax, readsSecrets } = functionDescriptions[name];
    accept(relayFunction, ...ofInterfaces, ...(readsSecrets ? secrets : []));
    if (eventSecondsMax !== undefined || streams?.some((stream) => stream.keepsFailures))
      // The event source mapping chooses the object names.
      accept(
        relayFunction,
        wildcard(`<${logicalIdOf(failures)}.Arn>/*`, 'Only PutObject, in a bucket for nothing else'),
      );
  }
  if (!topic) return;
  const why = 'SNS requires this; if the key is not known, only SNS can use it with these rights';
  const keys = `arn:${partition}:kms:${formatPlaceholder(stack.region, 'Region')}:${accountOf(topic)}:key/*`;
  accept(
    functions.get('notify'),
    finding('IAM5[Action::kms:GenerateDataKey*]', why),
    ...(hasUnknownKey(topic) ? [wildcard(keys, why)] : []),
  );
}

/** Acknowledges the findings of the edge stacks in us-east-1. */
export const acknowledgeEdge = (construct: IConstruct): void => acknowledge('edge', construct);

function acknowledge(what: keyof typeof reasons, ...constructs: (IConstruct | undefined)[]): void {
  const { own = {}, listed = {}, scanned = {} }: Reasons = reasons[what];
  const findings = [
    ...Object.entries(own).map(([rule, reason]) => finding(rule, reason)),
    ...Object.entries(listed).flatMap(([rule, reason]) =>
      ['HIPAA.Security', 'NIST.800.53.R4', 'NIST.800.53.R5'].map((pack) => ({
        id: `${pack}::${pack}-${rule}`,
        reason,
      })),
    ),
  ];
  for (const construct of constructs)
    if (construct) {
      accept(construct, ...findings);
      for (const [rule, reason] of Object.entries({ ...own, ...listed, ...scanned }))
        suppress(construct, [scannerNames[rule] ?? []].flat(), reason);
    }
}

interface Suppressions {
  checkov?: { skip: { id: string; comment: string }[] };
  guard?: { SuppressedRules: string[] };
}

/** Adds suppressions to the metadata of a construct's resources. checkov reads a reason for each rule, CloudFormation Guard only names. */
function suppress(construct: IConstruct, rules: readonly string[], comment: string): void {
  const resources = construct.node.findAll().filter(CfnResource.isCfnResource);
  for (const [type, ...names] of rules.map((rule) => rule.split(' ')))
    for (const { cfnOptions } of resources.filter(
      ({ cfnResourceType }) => cfnResourceType === `AWS::${type}`,
    )) {
      const { checkov, guard, ...others }: Suppressions = cfnOptions.metadata ?? {};
      const ids = names.filter((name) => name.startsWith('CKV'));
      const skip = [...(checkov?.skip ?? []), ...ids.map((id) => ({ id, comment }))];
      const SuppressedRules = [
        ...(guard?.SuppressedRules ?? []),
        ...names.filter((name) => !ids.includes(name)),
      ];
      cfnOptions.metadata = {
        ...others,
        ...(skip.length > 0 && { checkov: { skip } }),
        ...(SuppressedRules.length > 0 && { guard: { SuppressedRules } }),
      };
    }
}

const finding = (rule: string, reason: string): Acknowledgment => ({
  id: `AwsSolutions::AwsSolutions-${rule}`,
  reason,
});

/** @param resource an ARN with a wildcard */
const wildcard = (resource: string, reason: string): Acknowledgment =>
  finding(`IAM5[Resource::${resource}]`, reason);

/** Older versions of CDK can't acknowledge findings. */
function accept(construct: IConstruct, ...findings: Acknowledgment[]): void {
  if ('Validations' in cdk) cdk.Validations.of(construct).acknowledge(...findings);
}

/** Formats a value as findings show it: tokens become names in angle brackets. */
const formatPlaceholder = (value: string, name: string): string =>
  Token.isUnresolved(value) ? `<AWS::${name}>` : value;

function logicalIdOf(construct: IConstruct): string {
  const { defaultChild } = construct.node;
  if (!CfnElement.isCfnElement(defaultChild)) throw new Error(`${construct.node.path} is not one resource`);
  return Stack.of(construct).getLogicalId(defaultChild);
}
