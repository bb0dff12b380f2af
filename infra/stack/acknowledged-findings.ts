/** Accepted cdk-nag findings, each with the reason. A finding that is not listed here fails the synthesis. */
import * as cdk from 'aws-cdk-lib';
import { CfnElement, Stack, type Acknowledgment, Token } from 'aws-cdk-lib';
import type { ITopic } from 'aws-cdk-lib/aws-sns';
import type { IConstruct } from 'constructs';
import { functionDescriptions } from './constructs/function-descriptions.ts';
import { accountOf, hasUnknownKey } from './constructs/operator-policies.ts';
import type { RelayFunctions } from './constructs/relay-functions.ts';
import { type Triggers, emptyingProvider } from './constructs/triggers.ts';
import type { RelayService } from './constructs/relay-service.ts';
import type { ShiftRole } from './rollout.ts';

interface AcknowledgedConstructs {
  relayName: string;
  functions: RelayFunctions;
  originSecrets: IConstruct | undefined;
  sealKeys: IConstruct;
  distribution: IConstruct | undefined;
  /** Before the functions, or what clients call. */
  api: IConstruct | undefined;
  operatorPolicies: IConstruct;
  triggers: Triggers;
  shiftRoles: readonly ShiftRole[];
  /** Of compute `ecs`. */
  service: RelayService | undefined;
  /** Functions run in a VPC. */
  inVpc: boolean;
  /** Of the scheduled call. */
  canary?: IConstruct | undefined;
  /** Of copies in another region. */
  backup?: IConstruct | undefined;
  alarms: IConstruct;
  /** That alarms and notices go to. */
  topic?: ITopic | undefined;
  /** The bucket of the access log. Absent: none is written, or to a bucket that was given. */
  ownLog?: IConstruct | undefined;
}

const finding = (rule: string, reason: string): Acknowledgment => ({
  id: `AwsSolutions::AwsSolutions-${rule}`,
  reason,
});

/** @param what `Resource::*`, or an action with a wildcard */
const wildcard = (what: string, reason: string): Acknowledgment => finding(`IAM5[${what}]`, reason);

/** One rule of three packs: HIPAA Security, and NIST 800-53 in its revisions 4 and 5. */
const listed = (rule: string, reason: string): Acknowledgment[] =>
  ['HIPAA.Security', 'NIST.800.53.R4', 'NIST.800.53.R5'].map((pack) => ({
    id: `${pack}::${pack}-${rule}`,
    reason,
  }));

/** Older versions of CDK have nothing to acknowledge by. */
function accept(construct: IConstruct, ...findings: Acknowledgment[]): void {
  if ('Validations' in cdk) cdk.Validations.of(construct).acknowledge(...findings);
}

/** Acknowledges the accepted findings on their constructs. */
export function acknowledgeFindings(constructs: AcknowledgedConstructs): void {
  acknowledgeListed(constructs);
  const { relayName, functions, operatorPolicies, ownLog, shiftRoles, canary, topic } = constructs;
  const { failures } = constructs.triggers;
  const stack = Stack.of(operatorPolicies);
  const place = [shown(stack.region, 'Region'), shown(stack.account, 'AccountId')].join(':');
  const arn = (service: string): string => `arn:${shown(stack.partition, 'Partition')}:${service}:${place}`;
  for (const option of ['originSecrets', 'sealKeys'] as const)
    if (constructs[option])
      accept(
        constructs[option],
        finding(
          'SMG4',
          `Rotated by deploying with a new number (context ${option}): all that use it read it while deploying`,
        ),
      );
  if (constructs.api)
    accept(
      constructs.api,
      finding(
        'APIG1',
        'The functions log one line per request; a log of API Gateway needs a role that is of the whole account and region',
      ),
      finding('APIG2', 'The functions check each request, and say what is wrong with it in words of the API'),
      finding(
        'APIG3',
        'Every billed call needs a key, and keys have limits; a web ACL costs a fee each month and an operator can attach one',
      ),
      finding('APIG6', 'The functions log one line per request; such a log would hold headers with keys'),
    );
  if (constructs.distribution)
    accept(
      constructs.distribution,
      finding('CFR1', 'Which countries may use a relay is for its operator to say, not for this stack'),
      finding(
        'CFR2',
        'Every billed call needs a key, and keys have limits; a web ACL costs a fee each month and an operator can attach one',
      ),
      finding(
        'CFR3',
        'The functions log one line per request; a second log at the edge keeps client addresses, so an operator asks for it',
      ),
      finding(
        'CFR4',
        'Without a domain CloudFront fixes the policy of its own certificate; with one the minimum is TLS 1.2 (2021)',
      ),
    );
  const channelSecrets = [
    `${arn('ssm')}:parameter/relay/${relayName}/*`,
    `${arn('secretsmanager')}:secret:${relayName}/*`,
  ].map((resource) =>
    wildcard(
      `Resource::${resource}`,
      "Operators add channels with secrets of their own; only names under this stack's prefix can be read",
    ),
  );
  accept(
    operatorPolicies,
    ...channelSecrets,
    wildcard('Resource::*', 'AWS knows no resource of these actions, which read quotas and lists of models'),
    wildcard(
      `Resource::${arn('cloudformation')}:stack/${relayName}/*`,
      'AWS asks for this very resource where a stack is named and its id is not known',
    ),
    wildcard(
      `Resource::${arn('dynamodb')}:table/${relayName}-restore-20*`,
      'Copies have the second in their names that they are restored to',
    ),
  );
  accept(
    failures,
    finding(
      'S1',
      'Holds what an alarm has named, for weeks, readable by the account alone; a bucket of access logs would hold more than it',
    ),
  );
  if (ownLog)
    accept(
      ownLog,
      finding(
        'S1',
        'Holds an access log itself; a log of those who read it would be for the account to keep, for all its buckets',
      ),
    );
  // What CDK itself adds to a stack with a bucket that empties itself.
  const provider = emptyingProvider(stack);
  if (provider)
    accept(
      provider,
      finding(
        `IAM4[Policy::arn:${shown(stack.partition, 'Partition')}:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole]`,
        "CDK's own, in a trial alone: it empties the bucket of stream failures before the stack is deleted",
      ),
    );
  for (const { role, lambda } of shiftRoles)
    accept(
      role,
      wildcard('Resource::*', 'CodeDeploy asks for the states of alarms by name, and only reads them'),
      wildcard(`Resource::<${logicalIdOf(lambda)}.Arn>:*`, 'Versions and aliases of one function'),
    );
  const ofInterfaces = wildcard(
    'Resource::*',
    'Lambda makes the network interfaces of a function, and nothing names them before',
  );
  if (canary) accept(canary, ...channelSecrets, ...(constructs.inVpc ? [ofInterfaces] : []));
  if (constructs.backup)
    accept(
      constructs.backup,
      finding(
        'IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AWSBackupServiceRolePolicyForBackup]',
        'What AWS Backup needs of a role, as its guide says; it follows what the service learns to do',
      ),
    );
  const { service } = constructs;
  if (service)
    accept(
      service,
      ...channelSecrets,
      finding(
        'EC23',
        'The balancer has private addresses alone, and servers refuse whoever does not show the origin secret',
      ),
      finding('ECS2', 'Names, numbers and the stack’s id: every secret comes as one'),
      finding(
        'ECS4',
        'The relay’s own metrics say what its alarms need; Container Insights costs more than they',
      ),
      finding(
        'ELB2',
        'The servers log one line per request; a second log keeps client addresses, so an operator asks for it at the edge',
      ),
      finding(
        'VPC7',
        'Tasks alone are in this VPC, and nobody comes in but the balancer; a log of all flows costs more than they',
      ),
      wildcard('Resource::*', 'ECR gives a token to log in for no resource'),
    );
  for (const [name, relayFunction] of functions.byName) {
    const { streams, eventSecondsMax, readsChannelSecrets } = functionDescriptions[name];
    if (constructs.inVpc) accept(relayFunction, ofInterfaces);
    if (eventSecondsMax !== undefined || streams?.some((stream) => stream.keepsFailures))
      // The event source mapping chooses the names of objects.
      accept(
        relayFunction,
        wildcard(
          `Resource::<${logicalIdOf(failures)}.Arn>/*`,
          'One bucket that holds nothing else, and only PutObject',
        ),
      );
    if (readsChannelSecrets) accept(relayFunction, ...channelSecrets);
  }
  if (!topic) return;
  const keys = `arn:${shown(stack.partition, 'Partition')}:kms:${shown(stack.region, 'Region')}:${accountOf(topic)}:key/*`;
  for (const what of ['Action::kms:GenerateDataKey*', ...(hasUnknownKey(topic) ? [`Resource::${keys}`] : [])])
    accept(
      functions.get('notify'),
      wildcard(what, 'What SNS asks for; of a key that is not known, only SNS can use it with these rights'),
    );
}

/** What is encrypted has a key that AWS manages unless `encryptionKeys` names one. */
function acknowledgeListed(constructs: AcknowledgedConstructs): void {
  const { functions, triggers, alarms, ownLog, shiftRoles, canary, service, backup } = constructs;
  const ownKey = 'Encrypted by a key that AWS manages, unless encryptionKeys names one of yours';
  for (const secrets of [constructs.originSecrets ?? [], constructs.sealKeys].flat())
    accept(
      secrets,
      ...listed(
        'SecretsManagerRotationEnabled',
        'Rotated by deploying with a new number: CloudFront and functions must have both for a while',
      ),
      ...listed('SecretsManagerUsingKMSKey', ownKey),
    );
  if (constructs.api)
    accept(
      constructs.api,
      ...listed(
        'APIGWAssociatedWithWAF',
        'An ACL costs a fee each month: option webAcl makes one or takes yours',
      ),
      ...listed('APIGWCacheEnabledAndEncrypted', 'Answers are customers’ own: nothing is cached'),
      ...listed(
        'APIGWExecutionLoggingEnabled',
        'Its log would hold headers with keys; functions log each request',
      ),
      ...listed(
        'APIGWSSLEnabled',
        'A client certificate is for servers behind it; functions are called by IAM',
      ),
      ...listed('APIGWXrayEnabled', 'Traces of calls go to the receiver that option tracing names'),
    );
  const inline = listed(
    'IAMNoInlinePolicy',
    'What one role may; a policy of its own would let others take it',
  );
  for (const each of [functions, ...(canary ? [canary] : [])])
    accept(
      each,
      ...inline,
      ...listed('CloudWatchLogGroupEncrypted', ownKey),
      ...listed(
        'LambdaConcurrency',
        'reservedConcurrency and moneyConcurrency reserve it; what is reserved is taken from all other functions of the account',
      ),
      ...listed(
        'LambdaDLQ',
        'Streams and events keep what failed in the bucket of stream failures, and schedules run again; nothing else is invoked asynchronously',
      ),
      ...listed(
        'LambdaInsideVPC',
        'Function URLs do not stream from a VPC; DynamoDB and upstreams are public names',
      ),
      ...listed(
        'LambdaFunctionPublicAccessProhibited',
        'The URLs are public, since no SDK signs for IAM; functions refuse whoever does not show the origin secret',
      ),
    );
  accept(triggers, ...listed('CloudWatchLogGroupEncrypted', ownKey));
  for (const bucket of [triggers.failures, ...(ownLog ? [ownLog] : [])])
    accept(
      bucket,
      ...listed('S3DefaultEncryptionKMS', ownKey),
      ...listed(
        'S3BucketLoggingEnabled',
        'Only the account reads it; a log of its readers is for the account to keep',
      ),
      ...listed(
        'S3BucketReplicationEnabled',
        'Expires within weeks, and what it tells is in tables and logs too',
      ),
      ...listed('S3BucketVersioningEnabled', 'AWS writes each object once, under a name of its own'),
      ...listed(
        'S3BucketDefaultLockEnabled',
        'Expires within weeks; nobody but the account can delete from it',
      ),
    );
  for (const each of [...shiftRoles.map(({ role }) => role), ...(backup ? [backup] : [])])
    accept(each, ...inline);
  const inside =
    'The balancer has private addresses alone, which CloudFront reaches through its interfaces in the VPC';
  if (service)
    accept(
      service,
      ...inline,
      ...listed('CloudWatchLogGroupEncrypted', ownKey),
      ...['ALBHttpToHttpsRedirection', 'ELBv2ACMCertificateRequired', 'ALBWAFEnabled'].flatMap((rule) =>
        listed(rule, inside),
      ),
      ...listed(
        'ELBLoggingEnabled',
        'The servers log one line per request; one at the edge is the operator’s to ask for',
      ),
      ...listed(
        'ELBDeletionProtectionEnabled',
        'Holds nothing, and the stack that makes it again is protected itself',
      ),
      ...listed('VPCFlowLogsEnabled', 'Tasks alone are in this VPC; a log of all flows costs more than they'),
      ...listed(
        'VPCDefaultSecurityGroupClosed',
        'Nothing is in that group; CDK closes it by a function of its own',
      ),
      ...listed(
        'VPCNoUnrestrictedRouteToIGW',
        'Upstreams are anywhere; without NAT tasks have addresses that let nobody in but the balancer',
      ),
    );
  accept(
    alarms,
    ...listed(
      'CloudWatchAlarmAction',
      'Somebody to tell is the operator’s to name; while nobody is named, synthesis warns',
    ),
    ...listed(
      'SNSEncryptedKMS',
      'Says which alarm it is and nothing of customers; encryptionKeys.alarmTopic gives it a key',
    ),
  );
}

/** Of what is made in us-east-1 for the edge. */
export const acknowledgeEdge = (construct: IConstruct): void =>
  accept(
    construct,
    ...listed('WAFv2LoggingEnabled', 'A log of requests holds headers, and so the keys of customers'),
    ...listed('CloudWatchAlarmAction', 'Somebody to tell is the operator’s to name'),
    ...listed('SNSEncryptedKMS', 'Says which alarm it is, and nothing of customers'),
  );

/** As findings show it: what is open has its name in angle brackets. */
const shown = (value: string, name: string): string => (Token.isUnresolved(value) ? `<AWS::${name}>` : value);

function logicalIdOf(construct: IConstruct): string {
  const { defaultChild } = construct.node;
  if (!CfnElement.isCfnElement(defaultChild)) throw new Error(`${construct.node.path} is not one resource`);
  return Stack.of(construct).getLogicalId(defaultChild);
}
