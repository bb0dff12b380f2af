/**
 * Managed policies for the people who operate the relay, made from the table in infra/ops/access, and their ARNs as
 * outputs. None lets anybody write a balance but `repair`.
 */
import { CfnOutput, Stack } from 'aws-cdk-lib';
import { Effect, ManagedPolicy, PolicyDocument, PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { ILogGroup } from 'aws-cdk-lib/aws-logs';
import { Construct } from 'constructs';
import {
  policyAccess,
  policyNameIn,
  policyNames,
  type AccountAction,
  type PolicyAccess,
  type PolicyName,
  type TableAccess,
} from '../../ops/access/policy-access.ts';
import { allow, channelSecrets } from './allow.ts';
import type { RelayTables } from './relay-tables.ts';

export interface OperatorPoliciesProps {
  relayName: string;
  tables: RelayTables;
  /** Of the functions that answer calls. */
  callLogs: readonly ILogGroup[];
}

export class OperatorPolicies extends Construct {
  readonly byName: Readonly<Record<PolicyName, ManagedPolicy>>;
  readonly outputs: readonly CfnOutput[];

  constructor(scope: Construct, id: string, props: OperatorPoliciesProps) {
    super(scope, id);
    this.byName = Object.fromEntries(
      policyNames.map((name) => [name, managedPolicy(this, props, name)]),
    ) as Record<PolicyName, ManagedPolicy>;
    this.outputs = policyNames.map(
      (name) => new CfnOutput(scope, outputOf(name), { value: this.byName[name].managedPolicyArn }),
    );
  }
}

const managedPolicy = (scope: Construct, props: OperatorPoliciesProps, name: PolicyName): ManagedPolicy =>
  new ManagedPolicy(scope, name, {
    // A fixed name, so that an error of the command line can say it. Without a description: a changed one would
    // replace the policy, which CloudFormation refuses for a fixed name.
    managedPolicyName: policyNameIn(props.relayName, name, Stack.of(scope).region),
    document: new PolicyDocument({
      statements: statementsOf(Stack.of(scope), props, policyAccess[name]),
      minimize: true,
    }),
  });

/** `SupportPolicy`. */
const outputOf = (name: PolicyName): string => `${name.charAt(0).toUpperCase()}${name.slice(1)}Policy`;

function statementsOf(stack: Stack, props: OperatorPoliciesProps, access: PolicyAccess): PolicyStatement[] {
  const { secrets = [], neverWrites = [] } = access;
  return [
    ...access.tables.map((each) => tableStatement(props.tables, each)),
    ...props.tables.keyAccess(),
    ...secrets.map((action) => secretStatement(stack, props.relayName, action)),
    ...(access.searchesCallLogs
      ? [allow('logs', ['StartQuery'], ...props.callLogs.map(({ logGroupArn }) => logGroupArn))]
      : []),
    ...access.account.map((each) => accountStatement(stack, props.relayName, each)),
    ...(neverWrites.length === 0
      ? []
      : [writesDenied(neverWrites.map((name) => props.tables.byName[name].tableArn))]),
  ];
}

function tableStatement(
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
    // All of no values are like anything: a request without keys (Scan, PartiQL) would be allowed.
    statement.addCondition('Null', { 'dynamodb:LeadingKeys': 'false' });
  }
  return statement;
}

function secretStatement(stack: Stack, relayName: string, action: string): PolicyStatement {
  const [store = '', name = ''] = action.split(':');
  const service = store === 'ssm' ? store : 'secretsmanager';
  return allow(service, [name], channelSecrets(stack, relayName, service));
}

function accountStatement(
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

/** Holds against every other policy of the same person. Transactions need the actions of their items. */
const writesDenied = (resources: string[]): PolicyStatement =>
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
