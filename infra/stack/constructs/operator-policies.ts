/**
 * Managed policies for operators, built from the table in infra/access, and their ARNs as outputs. Only `repair` can write a
 * balance.
 */
import { CfnOutput, Stack, Token } from 'aws-cdk-lib';
import { Effect, ManagedPolicy, PolicyDocument, PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { ILogGroup } from 'aws-cdk-lib/aws-logs';
import { Construct } from 'constructs';
import { Topic, type ITopic } from 'aws-cdk-lib/aws-sns';
import {
  policyAccess,
  policyNameIn,
  policyNames,
  type AccountAction,
  type PolicyAccess,
  type PolicyName,
  type TableAccess,
} from '../../access/policies.ts';
import { allow, formatSecretArn, type RelayFunctions } from './relay-functions.ts';
import type { RelayTables } from './relay-tables.ts';
import { functionDescriptions } from './function-descriptions.ts';

interface OperatorPoliciesProps {
  relayName: string;
  tables: RelayTables;
  /** Log groups of the answering functions. */
  callLogs: readonly ILogGroup[];
}

export class OperatorPolicies extends Construct {
  readonly byName: Readonly<Record<PolicyName, ManagedPolicy>>;

  constructor(scope: Construct, id: string, props: OperatorPoliciesProps) {
    super(scope, id);
    this.byName = Object.fromEntries(
      policyNames.map((name) => [name, createManagedPolicy(this, props, name)]),
    ) as Record<PolicyName, ManagedPolicy>;
    for (const name of policyNames)
      void new CfnOutput(scope, `${name.charAt(0).toUpperCase()}${name.slice(1)}Policy`, {
        value: this.byName[name].managedPolicyArn,
      });
  }
}

const createManagedPolicy = (
  scope: Construct,
  props: OperatorPoliciesProps,
  name: PolicyName,
): ManagedPolicy =>
  new ManagedPolicy(scope, name, {
    // The name is fixed so that errors of the command line can quote it. There is no description, because changing it would
    // replace the policy, which CloudFormation refuses for a fixed name.
    managedPolicyName: policyNameIn(props.relayName, name, Stack.of(scope).region),
    document: new PolicyDocument({
      statements: statementsOf(Stack.of(scope), props, policyAccess[name]),
      minimize: true,
    }),
  });

export function statementsOf(
  stack: Stack,
  props: OperatorPoliciesProps,
  access: PolicyAccess,
): PolicyStatement[] {
  const { secrets = [], neverWrites = [] } = access;
  return [
    ...access.tables.map((each) => createTableStatement(props.tables, each)),
    ...props.tables.keyAccess(),
    ...secrets.map((action) => createSecretStatement(stack, props.relayName, action)),
    ...(access.searchesCallLogs
      ? [allow('logs', ['StartQuery'], ...props.callLogs.map(({ logGroupArn }) => logGroupArn))]
      : []),
    ...access.account.map((each) => createAccountStatement(stack, props.relayName, each)),
    ...(neverWrites.length === 0
      ? []
      : [denyWrites(neverWrites.map((name) => props.tables.byName[name].tableArn))]),
  ];
}

function createTableStatement(
  { byName }: RelayTables,
  { tables, index, actions, ids }: TableAccess,
): PolicyStatement {
  const statement = allow(
    'dynamodb',
    actions,
    ...tables.map((name) => byName[name].tableArn + (index === undefined ? '' : `/index/${index}`)),
  );
  if (ids !== undefined) {
    statement.addCondition('ForAllValues:StringLike', { 'dynamodb:LeadingKeys': ids });
    // `ForAllValues` is true for a request without keys (Scan, PartiQL), which must be refused.
    statement.addCondition('Null', { 'dynamodb:LeadingKeys': 'false' });
  }
  return statement;
}

function createSecretStatement(stack: Stack, relayName: string, action: string): PolicyStatement {
  const [store = '', name = ''] = action.split(':');
  const service = store === 'ssm' ? store : 'secretsmanager';
  return allow(service, [name], formatSecretArn(stack, service, `${relayName}/*`));
}

function createAccountStatement(
  stack: Stack,
  relayName: string,
  { action, resource }: AccountAction,
): PolicyStatement {
  const [service = '', name = ''] = action.split(':');
  if (resource === '*') return allow(service, [name], resource);
  const [, path = ''] = resource.replace('<stack>', relayName).split(':');
  const [kind = '', ...names] = path.split('/');
  return allow(service, [name], stack.formatArn({ service, resource: kind, resourceName: names.join('/') }));
}

/** A deny overrides every other policy of the same person. Transactions need the actions of their items. */
const denyWrites = (resources: string[]): PolicyStatement =>
  new PolicyStatement({
    effect: Effect.DENY,
    actions: [
      'PutItem',
      'UpdateItem',
      'DeleteItem',
      'BatchWriteItem',
      'PartiQLInsert',
      'PartiQLUpdate',
      'PartiQLDelete',
    ].map((action) => `dynamodb:${action}`),
    resources,
  });

// Lets the function `notify` publish to the stack's topic and send mail, if the deployment has them.

interface NoticeAccess {
  topic?: ITopic | undefined;
  /** The verified sender of mail to customers. */
  sender?: string | undefined;
}

/** A topic that is not created here may have a key that the stack doesn't know. */
export const hasUnknownKey = (topic: ITopic): boolean =>
  !(topic instanceof Topic) && topic.masterKey === undefined;

/** SNS uses the key with the publisher's rights. If only the topic's ARN is known, its key isn't. */
function allowTopicKey(topic: ITopic): PolicyStatement | undefined {
  const { masterKey } = topic;
  const actions = ['Decrypt', 'GenerateDataKey*'];
  if (masterKey !== undefined) return allow('kms', actions, masterKey.keyArn);
  if (!hasUnknownKey(topic)) return undefined;
  const { partition, region, urlSuffix } = Stack.of(topic);
  const statement = allow('kms', actions, `arn:${partition}:kms:${region}:${accountOf(topic)}:key/*`);
  statement.addCondition('StringEquals', { 'kms:ViaService': `sns.${region}.${urlSuffix}` });
  return statement;
}

/** Returns the account that owns the topic. A key in another account needs a policy that allows this one. */
export const accountOf = ({ env }: ITopic): string => (Token.isUnresolved(env.account) ? '*' : env.account);

export function allowNotices(functions: RelayFunctions, { topic, sender }: NoticeAccess): void {
  const { lambda } = functions.get('notify');
  if (topic) {
    lambda.addEnvironment('ALERT_TOPIC', topic.topicArn);
    lambda.addToRolePolicy(allow('sns', ['Publish'], topic.topicArn));
    const ofKey = allowTopicKey(topic);
    if (ofKey) lambda.addToRolePolicy(ofKey);
  }
  if (sender !== undefined) {
    lambda.addEnvironment('ALERT_SENDER', sender);
    lambda.addToRolePolicy(
      new PolicyStatement({
        actions: ['ses:SendEmail'],
        // SES checks whichever identity is verified: the address or its domain.
        resources: [sender, sender.slice(sender.indexOf('@') + 1)].map((identity) =>
          Stack.of(lambda).formatArn({ service: 'ses', resource: 'identity', resourceName: identity }),
        ),
        conditions: { StringEquals: { 'ses:FromAddress': sender } },
      }),
    );
  }
}

// Lets the answering functions call the Bedrock models of the deployment's options. None by default.

export function allowBedrockModels(functions: RelayFunctions, modelArns: readonly string[]): void {
  for (const [name, { lambda }] of functions.byName)
    if (functionDescriptions[name].callsModels)
      for (const statement of callsBedrock(modelArns)) lambda.addToRolePolicy(statement);
}

/** Every dialect of Bedrock's runtime needs both, for JSON and for streamed answers. */
export const callsBedrock = (modelArns: readonly string[]): PolicyStatement[] =>
  modelArns.length === 0
    ? []
    : [allow('bedrock', ['InvokeModel', 'InvokeModelWithResponseStream'], ...modelArns)];
