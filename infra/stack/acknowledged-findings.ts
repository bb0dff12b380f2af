/** Accepted cdk-nag findings, each with the reason. A finding that is not listed here fails the synthesis. */
import { CfnElement, Stack, Validations, type Acknowledgment, Token } from 'aws-cdk-lib';
import type { ITopic } from 'aws-cdk-lib/aws-sns';
import type { IConstruct } from 'constructs';
import { functionDescriptions } from './constructs/function-descriptions.ts';
import { accountOf, hasUnknownKey } from './constructs/operator-policies.ts';
import type { RelayFunctions } from './constructs/relay-functions.ts';
import { type Triggers, emptyingProvider } from './constructs/triggers.ts';
import type { Rollout } from './rollout.ts';

interface AcknowledgedConstructs {
  relayName: string;
  functions: RelayFunctions;
  originSecrets: IConstruct;
  sealKeys: IConstruct;
  distribution: IConstruct;
  operatorPolicies: IConstruct;
  triggers: Triggers;
  rollout: Rollout;
  /** That alarms and notices go to. */
  topic?: ITopic | undefined;
  /** The bucket of the access log. Absent: none is written, or to a bucket that was given. */
  ownLog?: IConstruct | undefined;
}

const rotatedByDeploying = (option: string): Acknowledgment => ({
  id: 'AwsSolutions::AwsSolutions-SMG4',
  reason: `Rotated by deploying with a new number (context ${option}): all that use it read it while deploying`,
});

const edgeFindings: Acknowledgment[] = [
  {
    id: 'AwsSolutions::AwsSolutions-CFR1',
    reason: 'Which countries may use a relay is for its operator to say, not for this stack',
  },
  {
    id: 'AwsSolutions::AwsSolutions-CFR2',
    reason:
      'Every billed call needs a key, and keys have limits; a web ACL costs a fee each month and an operator can attach one',
  },
  {
    id: 'AwsSolutions::AwsSolutions-CFR3',
    reason:
      'The functions log one line per request; a second log at the edge keeps client addresses, so an operator asks for it',
  },
  {
    id: 'AwsSolutions::AwsSolutions-CFR4',
    reason:
      'Without a domain CloudFront fixes the policy of its own certificate; with one the minimum is TLS 1.2 (2021)',
  },
];

const failuresAreFewAndRead: Acknowledgment = {
  id: 'AwsSolutions::AwsSolutions-S1',
  reason:
    'Holds what an alarm has named, for weeks, readable by the account alone; a bucket of access logs would hold more than it',
};

const isAnAccessLog: Acknowledgment = {
  id: 'AwsSolutions::AwsSolutions-S1',
  reason:
    'Holds an access log itself; a log of those who read it would be for the account to keep, for all its buckets',
};

/** Findings about the wildcards that let functions read channel secrets, whose names operators choose. */
function channelSecretFindings(stack: Stack, relayName: string): Acknowledgment[] {
  const resources = [
    `${shownArn(stack, 'ssm')}:parameter/relay/${relayName}/*`,
    `${shownArn(stack, 'secretsmanager')}:secret:${relayName}/*`,
  ];
  return resources.map((resource) => ({
    id: `AwsSolutions::AwsSolutions-IAM5[Resource::${resource}]`,
    reason:
      "Operators add channels with secrets of their own; only names under this stack's prefix can be read",
  }));
}

/** Findings about the wildcards of the policies for people. */
function operatorPolicyFindings(stack: Stack, relayName: string): Acknowledgment[] {
  const stackResource = `${shownArn(stack, 'cloudformation')}:stack/${relayName}/*`;
  const readsLists = 'AWS knows no resource of these actions, which read quotas and lists of models';
  return [
    ...channelSecretFindings(stack, relayName),
    { id: 'AwsSolutions::AwsSolutions-IAM5[Resource::*]', reason: readsLists },
    {
      id: `AwsSolutions::AwsSolutions-IAM5[Resource::${stackResource}]`,
      reason: 'AWS asks for this very resource where a stack is named and its id is not known',
    },
  ];
}

/** Findings about the wildcards of CodeDeploy's roles. */
const shiftFindings = (lambda: IConstruct): Acknowledgment[] => [
  {
    id: 'AwsSolutions::AwsSolutions-IAM5[Resource::*]',
    reason: 'CodeDeploy asks for the states of alarms by name, and only reads them',
  },
  {
    id: `AwsSolutions::AwsSolutions-IAM5[Resource::<${logicalIdOf(lambda)}.Arn>:*]`,
    reason: 'Versions and aliases of one function',
  },
];

/** The start of an ARN of the stack's place as findings show it. */
function shownArn({ partition, region, account }: Stack, service: string): string {
  const place = [shown(region, 'Region'), shown(account, 'AccountId')].join(':');
  return `arn:${shown(partition, 'Partition')}:${service}:${place}`;
}

/** Findings about the key of a topic, which may be known by its ARN alone. */
function topicKeyFindings(stack: Stack, topic: ITopic): Acknowledgment[] {
  const { partition, region } = stack;
  const place = `arn:${shown(partition, 'Partition')}:kms:${shown(region, 'Region')}:${accountOf(topic)}`;
  const keys = hasUnknownKey(topic) ? [`Resource::${place}:key/*`] : [];
  return ['Action::kms:GenerateDataKey*', ...keys].map((finding) => ({
    id: `AwsSolutions::AwsSolutions-IAM5[${finding}]`,
    reason: 'What SNS asks for; of a key that is not known, only SNS can use it with these rights',
  }));
}

/** The finding about the wildcard for object names, which the event source mapping chooses. */
const failureObjectsFinding = (failures: IConstruct): Acknowledgment => ({
  id: `AwsSolutions::AwsSolutions-IAM5[Resource::<${logicalIdOf(failures)}.Arn>/*]`,
  reason: 'One bucket that holds nothing else, and only PutObject',
});

function logicalIdOf(construct: IConstruct): string {
  const { defaultChild } = construct.node;
  if (!CfnElement.isCfnElement(defaultChild)) throw new Error(`${construct.node.path} is not one resource`);
  return Stack.of(construct).getLogicalId(defaultChild);
}

/** Acknowledges the accepted findings on their constructs. */
export function acknowledgeFindings(constructs: AcknowledgedConstructs): void {
  Validations.of(constructs.originSecrets).acknowledge(rotatedByDeploying('originSecrets'));
  Validations.of(constructs.sealKeys).acknowledge(rotatedByDeploying('sealKeys'));
  Validations.of(constructs.distribution).acknowledge(...edgeFindings);
  const { operatorPolicies, relayName } = constructs;
  Validations.of(operatorPolicies).acknowledge(
    ...operatorPolicyFindings(Stack.of(operatorPolicies), relayName),
  );
  const { failures } = constructs.triggers;
  Validations.of(failures).acknowledge(failuresAreFewAndRead);
  if (constructs.ownLog) Validations.of(constructs.ownLog).acknowledge(isAnAccessLog);
  acknowledgeEmptying(Stack.of(failures));
  const { shift, canary } = constructs.rollout;
  for (const { role, lambda } of shift?.roles ?? [])
    Validations.of(role).acknowledge(...shiftFindings(lambda));
  if (canary)
    Validations.of(canary.function).acknowledge(
      ...channelSecretFindings(Stack.of(canary), constructs.relayName),
    );
  for (const [name, relayFunction] of constructs.functions.byName) {
    const { streams, eventSecondsMax } = functionDescriptions[name];
    if (eventSecondsMax !== undefined || streams?.some((stream) => stream.keepsFailures))
      Validations.of(relayFunction).acknowledge(failureObjectsFinding(failures));
    if (!functionDescriptions[name].readsChannelSecrets) continue;
    const stack = Stack.of(relayFunction);
    Validations.of(relayFunction).acknowledge(...channelSecretFindings(stack, constructs.relayName));
  }
  const { topic } = constructs;
  const notify = constructs.functions.get('notify');
  if (topic) Validations.of(notify).acknowledge(...topicKeyFindings(Stack.of(notify), topic));
}

// Accepted cdk-nag findings about what CDK itself adds to a stack. With a Web Function: a bucket for its code, and a function
// that copies the code there while deploying. With a bucket that empties itself: the function that does.

/** As findings show it: what is open has its name in angle brackets. */
const shown = (value: string, name: string): string => (Token.isUnresolved(value) ? `<AWS::${name}>` : value);

const basicExecution = (stack: Stack): string =>
  `IAM4[Policy::arn:${shown(stack.partition, 'Partition')}:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole]`;

/** Without effect on a stack that has no such bucket. */
function acknowledgeEmptying(stack: Stack): void {
  const provider = emptyingProvider(stack);
  if (!provider) return;
  Validations.of(provider).acknowledge({
    id: `AwsSolutions::AwsSolutions-${basicExecution(stack)}`,
    reason:
      "CDK's own, in a trial alone: it empties the bucket of stream failures before the stack is deleted",
  });
}
