/**
 * Accepted cdk-nag findings, each with its reason. A finding of AwsSolutions that is not listed here fails the synthesis. The findings of
 * three more packs are listed for apps that use them and for a test, because the reasons belong to the construct.
 */
import * as cdk from 'aws-cdk-lib';
import { CfnElement, Stack, type Acknowledgment, Token } from 'aws-cdk-lib';
import type { ITopic } from 'aws-cdk-lib/aws-sns';
import type { IConstruct } from 'constructs';
import { secretPurposes } from '../../shared/config/rows/secret-reference.ts';
import { functionDescriptions } from './constructs/function-descriptions.ts';
import { accountOf, hasUnknownKey } from './constructs/operator-policies.ts';
import type { RelayFunctions } from './constructs/relay-functions.ts';
import { type Triggers, findEmptyingProvider } from './constructs/triggers.ts';
import type { RelayService } from './constructs/relay-service.ts';
import type { ShiftRole } from './rollout.ts';

interface AcknowledgedConstructs {
  relayName: string;
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

/** Maps rules to reasons: `own` for AwsSolutions, `listed` for HIPAA Security and NIST 800-53 revisions 4 and 5. */
interface Reasons {
  own?: Readonly<Record<string, string>>;
  listed?: Readonly<Record<string, string>>;
}

const ownKey = 'Encrypted by a key that AWS manages, unless encryptionKeys names one of yours';
const oneRole = 'What one role may; a policy of its own would let others take it';
const noAcl =
  'Every billed call needs a key, and keys have limits; an ACL costs a fee each month: option webAcl makes one or takes yours';
const oneLine = 'The functions log one line per request, and no header, which may hold a key';
const inside =
  'The balancer has private addresses alone, and servers refuse whoever does not show the origin secret';
const noFlows =
  'Tasks alone are in this VPC, and nobody comes in but the balancer; a log of all flows costs more than they';

/** Findings to acknowledge on a construct and everything below it, by the kind of construct. */
const reasons = {
  secrets: {
    own: { SMG4: 'Rotated by deploying with a new number: all that use it read it while deploying' },
    listed: {
      SecretsManagerRotationEnabled:
        'Rotated by deploying with a new number: CloudFront and functions must have both for a while',
      SecretsManagerUsingKMSKey: ownKey,
    },
  },
  api: {
    own: {
      APIG1: `${oneLine}; a log of API Gateway needs a role that is of the whole account and region`,
      APIG2: 'The functions check each request, and say what is wrong with it in words of the API',
      APIG3: noAcl,
      APIG6: oneLine,
    },
    listed: {
      APIGWAssociatedWithWAF: noAcl,
      APIGWCacheEnabledAndEncrypted: 'Answers are customers’ own: nothing is cached',
      APIGWExecutionLoggingEnabled: oneLine,
      APIGWSSLEnabled: 'A client certificate is for servers behind it; functions are called by IAM',
      APIGWXrayEnabled: 'Traces of calls go to the receiver that option tracing names',
    },
  },
  distribution: {
    own: {
      CFR1: 'Which countries may use a relay is for its operator to say, not for this stack',
      CFR2: noAcl,
      CFR3: 'A second log, at the edge, keeps client addresses, so an operator asks for it',
      CFR4: 'Without a domain CloudFront fixes the policy of its own certificate; with one the minimum is TLS 1.2 (2021)',
    },
  },
  functions: {
    listed: {
      IAMNoInlinePolicy: oneRole,
      CloudWatchLogGroupEncrypted: ownKey,
      LambdaConcurrency:
        'reservedConcurrency and moneyConcurrency reserve it; what is reserved is taken from all other functions of the account',
      LambdaDLQ:
        'Streams and events keep what failed in the bucket of stream failures, and schedules run again; nothing else is invoked asynchronously',
      LambdaInsideVPC: 'Function URLs do not stream from a VPC; DynamoDB and upstreams are public names',
      LambdaFunctionPublicAccessProhibited:
        'The URLs are public, since no SDK signs for IAM; functions refuse whoever does not show the origin secret',
    },
  },
  triggers: { listed: { CloudWatchLogGroupEncrypted: ownKey } },
  buckets: {
    own: { S1: 'Readable by the account alone; a log of who reads it is for the account to keep' },
    listed: {
      S3DefaultEncryptionKMS: ownKey,
      S3BucketLoggingEnabled:
        'Readable by the account alone; a log of who reads it is for the account to keep',
      S3BucketReplicationEnabled: 'Expires within weeks, and what it tells is in tables and logs too',
      S3BucketVersioningEnabled: 'AWS writes each object once, under a name of its own',
      S3BucketDefaultLockEnabled: 'Expires within weeks; nobody but the account can delete from it',
    },
  },
  roles: { listed: { IAMNoInlinePolicy: oneRole } },
  service: {
    own: {
      EC23: inside,
      ECS2: 'Names, numbers and the stack’s id: every secret comes as one',
      ECS4: 'The relay’s own metrics say what its alarms need; Container Insights costs more than they',
      ELB2: 'The servers log one line per request; a second log keeps client addresses, so an operator asks for it at the edge',
      VPC7: noFlows,
    },
    listed: {
      IAMNoInlinePolicy: oneRole,
      CloudWatchLogGroupEncrypted: ownKey,
      ALBHttpToHttpsRedirection: inside,
      ELBv2ACMCertificateRequired: inside,
      ALBWAFEnabled: inside,
      ELBLoggingEnabled: 'The servers log one line per request; one at the edge is the operator’s to ask for',
      ELBDeletionProtectionEnabled: 'Holds nothing, and the stack that makes it again is protected itself',
      VPCFlowLogsEnabled: noFlows,
      VPCDefaultSecurityGroupClosed: 'Nothing is in that group; CDK closes it by a function of its own',
      VPCNoUnrestrictedRouteToIGW:
        'Upstreams are anywhere; without NAT tasks have addresses that let nobody in but the balancer',
    },
  },
  alarms: {
    listed: {
      CloudWatchAlarmAction:
        'Somebody to tell is the operator’s to name; while nobody is named, synthesis warns',
      SNSEncryptedKMS:
        'Says which alarm it is and nothing of customers; encryptionKeys.alarmTopic gives it a key',
    },
  },
  edge: {
    listed: {
      WAFv2LoggingEnabled: 'A log of requests holds headers, and so the keys of customers',
      CloudWatchAlarmAction: 'Somebody to tell is the operator’s to name',
      SNSEncryptedKMS: 'Says which alarm it is, and nothing of customers',
    },
  },
} satisfies Record<string, Reasons>;

/** Acknowledges the accepted findings on their constructs. */
export function acknowledgeFindings(constructs: AcknowledgedConstructs): void {
  const { functions, operatorPolicies, ownLog, shiftRoles, canary, topic, service, backup } = constructs;
  const { failures } = constructs.triggers;
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
      wildcard('*', 'AWS knows no resource of these actions, which read quotas and lists of models'),
      wildcard(
        formatFindingArn(`cloudformation:stack/${relayName}/*`),
        'AWS asks for this very resource where a stack is named and its id is not known',
      ),
    );
  accept(
    operatorPolicies,
    wildcard(
      formatFindingArn(`dynamodb:table/${relayName}-restore-20*`),
      'Copies have the second in their names that they are restored to',
    ),
  );
  // CDK adds this provider to a stack with a bucket that empties itself.
  const provider = findEmptyingProvider(stack);
  if (provider)
    accept(
      provider,
      acknowledgeManaged(
        'AWSLambdaBasicExecutionRole',
        "CDK's own, in a trial alone: it empties the bucket of stream failures before the stack is deleted",
      ),
    );
  for (const { role, lambda } of shiftRoles)
    accept(
      role,
      wildcard('*', 'CodeDeploy asks for the states of alarms by name, and only reads them'),
      wildcard(`<${logicalIdOf(lambda)}.Arn>:*`, 'Versions and aliases of one function'),
    );
  const ofInterfaces = constructs.inVpc
    ? [wildcard('*', 'Lambda makes the network interfaces of a function, and nothing names them before')]
    : [];
  if (canary) accept(canary, ...secrets, ...ofInterfaces);
  if (backup)
    accept(
      backup,
      acknowledgeManaged(
        'AWSBackupServiceRolePolicyForBackup',
        'What AWS Backup needs of a role, as its guide says; it follows what the service learns to do',
        '<AWS::Partition>',
      ),
    );
  if (service) accept(service, ...secrets, wildcard('*', 'ECR gives a token to log in for no resource'));
  for (const [name, relayFunction] of functions.byName) {
    const { streams, eventSecondsMax, readsSecrets } = functionDescriptions[name];
    accept(relayFunction, ...ofInterfaces, ...(readsSecrets ? secrets : []));
    if (eventSecondsMax !== undefined || streams?.some((stream) => stream.keepsFailures))
      // The event source mapping chooses the object names.
      accept(
        relayFunction,
        wildcard(
          `<${logicalIdOf(failures)}.Arn>/*`,
          'One bucket that holds nothing else, and only PutObject',
        ),
      );
  }
  if (!topic) return;
  const why = 'What SNS asks for; of a key that is not known, only SNS can use it with these rights';
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
  const { own = {}, listed = {} }: Reasons = reasons[what];
  const findings = [
    ...Object.entries(own).map(([rule, reason]) => finding(rule, reason)),
    ...Object.entries(listed).flatMap(([rule, reason]) =>
      ['HIPAA.Security', 'NIST.800.53.R4', 'NIST.800.53.R5'].map((pack) => ({
        id: `${pack}::${pack}-${rule}`,
        reason,
      })),
    ),
  ];
  for (const construct of constructs) if (construct) accept(construct, ...findings);
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
