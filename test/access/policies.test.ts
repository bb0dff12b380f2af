import { describe, expect, it } from 'vitest';
import { policyNames, type PolicyName } from '../../infra/ops/access/policies.ts';
import { synthesize } from '../infra/synthesize.ts';
import { tableNames } from '../../shared/tables/table-schemas.ts';
import { evaluate, permissionsOf, type Statement } from './policy-document.ts';
import { arnOf, policiesOf } from './template-policies.ts';

const { template } = synthesize({});
const policies = policiesOf(template);
const statementsOf = (name: PolicyName): Statement[] => policies.get(name)?.statements ?? [];

const moneyTables = ['quotas', 'ledger', 'daily'];
const writes = [
  'PutItem',
  'UpdateItem',
  'DeleteItem',
  'BatchWriteItem',
  'PartiQLInsert',
  'PartiQLUpdate',
  'PartiQLDelete',
];
const everything: Statement = { Effect: 'Allow', Action: '*', Resource: '*' };
const tableArn = (table: string, stack = 'relay') => arnOf('dynamodb', `table/${stack}-${table}`);
const decisionOn = (statements: Statement[], action: string, resource: string, keys = {}) =>
  evaluate(statements, { action, resource, keys });

describe('the policy of operators', () => {
  it.each(moneyTables.flatMap((table) => writes.map((action) => [action, table] as const)))(
    'denies %s on %s, also to somebody who may do everything else',
    (action, table) => {
      const statements = [everything, ...statementsOf('operator')];
      expect(decisionOn(statements, `dynamodb:${action}`, tableArn(table))).toEqual({
        allowed: false,
        explicitly: true,
      });
    },
  );

  /** Tables of which they write items with this partition key. */
  const writtenBy = (key: string): string[] =>
    tableNames.filter((table) =>
      writes.some(
        (action) =>
          decisionOn(statementsOf('operator'), `dynamodb:${action}`, tableArn(table), {
            'dynamodb:LeadingKeys': [key],
          }).allowed,
      ),
    );

  it('lets them write exactly the tables of people, and payments, and delete stored responses', () => {
    const people = ['accounts', 'channels', 'charges', 'grants', 'keys', 'payments', 'plans', 'settings'];
    expect(writtenBy('acme').toSorted()).toEqual([...people, 'responses'].toSorted());
    expect(writtenBy('content-read#2026').toSorted()).toEqual([...people, 'responses', 'runtime'].toSorted());
    const forge = (action: string): boolean =>
      decisionOn(statementsOf('operator'), `dynamodb:${action}`, tableArn('responses')).allowed;
    expect([forge('PutItem'), forge('UpdateItem')]).toEqual([false, false]);
  });

  it('lets nobody else open what customers wrote', () => {
    for (const name of ['support', 'repair'] as const)
      for (const action of ['GetItem', 'BatchGetItem', 'Query', 'Scan'])
        expect(decisionOn(statementsOf(name), `dynamodb:${action}`, tableArn('responses')).allowed).toBe(
          false,
        );
  });

  it('reaches the secrets and tables of its own stack alone', () => {
    const operator = statementsOf('operator');
    const allows = (action: string, resource: string) => decisionOn(operator, action, resource).allowed;
    expect(allows('ssm:GetParameter', arnOf('ssm', 'parameter/relay/relay/openai'))).toBe(true);
    expect(allows('ssm:GetParameter', arnOf('ssm', 'parameter/relay/relay-test/openai'))).toBe(false);
    expect(allows('ssm:GetParameter', arnOf('ssm', 'parameter/other'))).toBe(false);
    const secret = 'secretsmanager:GetSecretValue';
    expect(allows(secret, arnOf('secretsmanager', 'secret:relay/openai-AbCdEf'))).toBe(true);
    expect(allows(secret, arnOf('secretsmanager', 'secret:relay-test/openai-AbCdEf'))).toBe(false);
    // Origin secrets and seal keys have the names that CloudFormation makes.
    expect(allows(secret, arnOf('secretsmanager', 'secret:OriginSecret1A2B3C4D-AbCdEf'))).toBe(false);
    expect(allows('dynamodb:PutItem', tableArn('keys', 'relay-test'))).toBe(false);
  });
});

describe('the log of calls', () => {
  it('is searched by support and operators in the groups of functions that answer calls, and in no others', () => {
    const searches = (name: PolicyName, group: string) =>
      decisionOn(statementsOf(name), 'logs:StartQuery', arnOf('logs', `log-group:${group}:*`)).allowed;
    const groups = statementsOf('support')
      .flatMap(permissionsOf)
      .filter((each) => each.startsWith('logs:StartQuery'));
    expect(groups.map((each) => String(/Functions(\w+)Logs/.exec(each)?.[1])).toSorted()).toEqual([
      'background',
      'chat',
      'responses',
    ]);
    for (const name of ['support', 'operator'] as const) {
      expect(searches(name, 'relay-test-FunctionschatLogs9F822A8D-AbCdEfGhIjKl')).toBe(false);
      expect(searches(name, '/aws/lambda/other')).toBe(false);
    }
    expect(statementsOf('repair').flatMap(permissionsOf).join(' ')).not.toContain('logs:');
  });
});

describe('the policy of support', () => {
  it('has no action that writes, and none that reads a secret', () => {
    const actions = statementsOf('support').flatMap(({ Action }) => [Action].flat());
    expect(
      actions.filter((action) => !/^\w+:(BatchGet|Get|Query|Scan|Describe|List|StartQuery)/.test(action)),
    ).toEqual([]);
    expect(actions.filter((action) => /Secret|GetParameter/.test(action))).toEqual([]);
  });
});

describe('what is in the table `runtime`', () => {
  const runtime = tableArn('runtime');
  const of = (...ids: string[]) => ({ 'dynamodb:LeadingKeys': ids });

  it('is read as far as published versions go: no turns, no idempotency keys, no notices', () => {
    for (const name of ['support', 'operator'] as const) {
      const read = (...ids: string[]) =>
        decisionOn(statementsOf(name), 'dynamodb:BatchGetItem', runtime, of(...ids)).allowed;
      expect(read('config', 'snapshot#12#0', 'rows#12#0')).toBe(true);
      for (const id of ['turn#x', 'request#x', 'notice#x', 'cooldowns', 'configuration']) {
        expect({ id, allowed: read(id) }).toEqual({ id, allowed: false });
        expect(read('config', id)).toBe(false);
      }
      // All of no keys are allowed ones.
      expect(decisionOn(statementsOf(name), 'dynamodb:BatchGetItem', runtime, {}).allowed).toBe(false);
    }
  });

  it('is written by repairs in counters of budgets alone', () => {
    const write = (id: string) =>
      decisionOn(statementsOf('repair'), 'dynamodb:UpdateItem', runtime, of(id)).allowed;
    expect(write('budget#0123456789ab#month@2026-11-01')).toBe(true);
    expect(write('config')).toBe(false);
  });
});

describe('every policy', () => {
  it.each(policyNames)(
    '%s names its actions and resources: a wildcard stands only where none could be narrower',
    (name) => {
      // AWS knows no resource of these, or makes a part of the name up.
      const wild = new Set([
        'bedrock:GetFoundationModelAvailability *',
        'bedrock:ListFoundationModels *',
        'dynamodb:DescribeLimits *',
        'lambda:GetAccountSettings *',
        'logs:DescribeLogGroups *',
        'logs:GetQueryResults *',
        `cloudformation:DescribeStacks ${arnOf('cloudformation', 'stack/relay/*')}`,
        ...['GetParameter', 'PutParameter'].map(
          (each) => `ssm:${each} ${arnOf('ssm', 'parameter/relay/relay/*')}`,
        ),
        ...['CreateSecret', 'GetSecretValue', 'PutSecretValue'].map(
          (each) => `secretsmanager:${each} ${arnOf('secretsmanager', 'secret:relay/*')}`,
        ),
      ]);
      const permissions = statementsOf(name)
        .flatMap(permissionsOf)
        // The end of a log group's ARN stands for its streams.
        .map((each) => each.replace(/^(logs:StartQuery .*):\*$/, '$1'));
      expect(permissions.length).toBeGreaterThan(5);
      expect(permissions.filter((each) => each.includes('*') && !wild.has(each))).toEqual([]);
    },
  );

  it('fits into the 6,144 characters of IAM, with the longest name and region', () => {
    const longest = policiesOf(synthesize({ stage: 'x'.repeat(21) }).template);
    expect(longest.size).toBe(policyNames.length);
    for (const { statements } of longest.values()) {
      const document = JSON.stringify({ Version: '2012-10-17', Statement: statements });
      const longerRegion = 'ap-northeast-1'.length - 'eu-west-1'.length;
      const characters = document.length + document.split('eu-west-1').length * longerRegion;
      expect(characters).toBeLessThanOrEqual(6144);
    }
  });

  it('has a name of its stack and region, and its ARN is an output', () => {
    expect([...policies.values()].map(({ name }) => name).toSorted()).toEqual([
      'relay-operator-eu-west-1',
      'relay-repair-eu-west-1',
      'relay-support-eu-west-1',
    ]);
    for (const output of ['OperatorPolicy', 'SupportPolicy', 'RepairPolicy']) {
      const { Ref: id = '' } = (template.Outputs[output]?.Value ?? {}) as { Ref?: string };
      expect(template.Resources[id]?.Type).toBe('AWS::IAM::ManagedPolicy');
      expect(id.toLowerCase()).toContain(output.replace('Policy', '').toLowerCase());
    }
  });
});
