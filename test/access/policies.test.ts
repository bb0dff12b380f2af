import { describe, expect, it } from 'vitest';
import { callingFunctions } from '../../infra/stack/constructs/function-descriptions.ts';
import { policyNames, type PolicyName } from '../../infra/access/policies.ts';
import { synthesize } from '../infra/synthesize.ts';
import { tableNames } from '../../shared/tables/table-schemas.ts';
import { evaluate, permissionsOf, type Statement } from './policy-document.ts';
import { arnOf, policiesOf } from './template-policies.ts';

const { template } = synthesize({});
const policies = policiesOf(template);
const statementsOf = (name: PolicyName): Statement[] => policies.get(name)?.statements ?? [];

const writes = 'PutItem UpdateItem DeleteItem BatchWriteItem PartiQLInsert PartiQLUpdate PartiQLDelete'.split(
  ' ',
);
const tableArn = (table: string, stack = 'relay') => arnOf('dynamodb', `table/${stack}-${table}`);
/** @param ids partition keys of the items that are asked for */
const isAllowed = (name: PolicyName, action: string, resource: string, ids?: string[]): boolean =>
  evaluate(statementsOf(name), { action, resource, keys: ids ? { 'dynamodb:LeadingKeys': ids } : {} })
    .allowed;

describe('the policy of operators', () => {
  it.each(['quotas', 'ledger', 'daily'].flatMap((table) => writes.map((action) => [action, table] as const)))(
    'denies %s on %s even if another policy allows everything',
    (action, table) => {
      const everything: Statement = { Effect: 'Allow', Action: '*', Resource: '*' };
      const access = { action: `dynamodb:${action}`, resource: tableArn(table), keys: {} };
      expect(evaluate([everything, ...statementsOf('operator')], access)).toEqual({
        allowed: false,
        explicitly: true,
      });
    },
  );

  it('allows writes to exactly the tables that people edit and payments, and deletion of stored responses', () => {
    const writtenBy = (id: string): string[] =>
      tableNames.filter((table) =>
        writes.some((action) => isAllowed('operator', `dynamodb:${action}`, tableArn(table), [id])),
      );
    const people = [
      'accounts',
      'channels',
      'charges',
      'codes',
      'grants',
      'keys',
      'payments',
      'plans',
      'settings',
    ];
    expect(writtenBy('acme').toSorted()).toEqual([...people, 'responses'].toSorted());
    expect(writtenBy('content-read#2026').toSorted()).toEqual([...people, 'responses', 'runtime'].toSorted());
    for (const action of ['PutItem', 'UpdateItem'])
      expect(isAllowed('operator', `dynamodb:${action}`, tableArn('responses'))).toBe(false);
  });

  const parameter = (name: string) => arnOf('ssm', `parameter/${name}`);
  const secret = (name: string) => arnOf('secretsmanager', `secret:${name}-AbCdEf`);
  it.each([
    ['ssm:GetParameter', parameter('relay/relay/openai'), true],
    ['ssm:GetParameter', parameter('relay/relay-test/openai'), false],
    ['ssm:GetParameter', parameter('other'), false],
    ['secretsmanager:GetSecretValue', secret('relay/openai'), true],
    ['secretsmanager:GetSecretValue', secret('relay-test/openai'), false],
    // Origin secrets and seal keys have the names that CloudFormation makes.
    ['secretsmanager:GetSecretValue', secret('OriginSecret1A2B3C4D'), false],
    ['dynamodb:PutItem', tableArn('keys', 'relay-test'), false],
  ])(
    'allows access only to the secrets and tables of its own stack: %s %s: %s',
    (action, resource, allowed) => {
      expect(isAllowed('operator', action, resource)).toBe(allowed);
    },
  );
});

describe('other policies', () => {
  it('deny access to the content of customers', () => {
    for (const name of ['support', 'repair'] as const)
      for (const action of ['GetItem', 'BatchGetItem', 'Query', 'Scan'])
        expect(isAllowed(name, `dynamodb:${action}`, tableArn('responses'))).toBe(false);
  });

  it('of support allow no writes and no reads of secrets', () => {
    const actions = statementsOf('support').flatMap(({ Action }) => [Action].flat());
    const reads = /^\w+:(BatchGet|Get|Query|Scan|Describe|List|StartQuery)(?!Secret|Parameter)/;
    expect(actions.filter((action) => !reads.test(action))).toEqual([]);
  });

  it('allow a restore to write to copies of this stack, but to none of the tables that people edit', () => {
    const write = (table: string) => isAllowed('restore', 'dynamodb:DeleteTable', tableArn(table));
    expect([write('restore-20261120120000-quotas'), write('quotas'), write('restore-me-quotas')]).toEqual([
      true,
      false,
      false,
    ]);
    const edited = ['channels', 'charges', 'plans'].filter((table) =>
      writes.some((action) => isAllowed('restore', `dynamodb:${action}`, tableArn(table))),
    );
    expect(edited).toEqual([]);
  });

  it('allow repairs to write only the counters of budgets in the table `runtime`', () => {
    const write = (id: string) => isAllowed('repair', 'dynamodb:UpdateItem', tableArn('runtime'), [id]);
    expect([write('budget#0123456789ab#month@2026-11-01'), write('config')]).toEqual([true, false]);
  });
});

it('support and operators may search the log groups of functions that answer calls, and no others', () => {
  const groups = statementsOf('support')
    .flatMap(permissionsOf)
    .filter((each) => each.startsWith('logs:StartQuery'));
  expect(new Set(groups.map((each) => /Functions(\w+)Logs/.exec(each)?.[1]))).toEqual(
    new Set(callingFunctions),
  );
  for (const name of ['support', 'operator'] as const)
    for (const group of ['relay-test-FunctionschatLogs9F822A8D-AbCdEfGhIjKl', '/aws/lambda/other'])
      expect(isAllowed(name, 'logs:StartQuery', arnOf('logs', `log-group:${group}:*`))).toBe(false);
  expect(statementsOf('repair').flatMap(permissionsOf).join(' ')).not.toContain('logs:');
});

it.each(['support', 'operator'] as const)(
  '%s may read published versions in the table `runtime`, but no turns, idempotency keys or notices',
  (name) => {
    const read = (...ids: string[]) => isAllowed(name, 'dynamodb:BatchGetItem', tableArn('runtime'), ids);
    expect(read('config', 'snapshot#12#0', 'rows#12#0', 'cooldowns', 'channel-marks')).toBe(true);
    for (const id of ['turn#x', 'request#x', 'notice#x', 'cooldown', 'configuration'])
      expect([id, read(id), read('config', id)]).toEqual([id, false, false]);
    // A request without keys is allowed, because it names no forbidden key.
    expect(isAllowed(name, 'dynamodb:BatchGetItem', tableArn('runtime'))).toBe(false);
  },
);

describe('every policy', () => {
  // AWS defines no resource for these or generates part of the name; the `*` that ends a log group's ARN means its streams.
  const wild = [
    /^(bedrock:(GetFoundationModelAvailability|ListFoundationModels)|dynamodb:DescribeLimits) \*$/,
    /^(lambda:GetAccountSettings|logs:(DescribeLogGroups|GetQueryResults)) \*$/,
    /^cloudformation:DescribeStacks \S+:stack\/relay\/\*$/,
    /^ssm:\w+ \S+:parameter\/relay\/relay\/\*$/,
    /^secretsmanager:\w+ \S+:secret:relay\/\*$/,
    /^logs:StartQuery [^*]+:\*$/,
    // The names of copies contain the second that they are restored to.
    /^dynamodb:\w+ \S+:table\/relay-restore-20\*$/,
  ];

  it.each(policyNames)(
    '%s names its actions and resources, and uses a wildcard only if nothing narrower is possible',
    (name) => {
      const permissions = statementsOf(name).flatMap(permissionsOf);
      expect(permissions).not.toEqual([]);
      expect(
        permissions.filter((each) => each.includes('*') && !wild.some((known) => known.test(each))),
      ).toEqual([]);
    },
  );

  it('fits into the 6,144 characters of IAM, with the longest name and region', () => {
    const longest = policiesOf(synthesize({ stage: 'x'.repeat(21) }).template);
    expect(longest.size).toBe(policyNames.length);
    for (const { statements } of longest.values()) {
      const document = JSON.stringify({ Version: '2012-10-17', Statement: statements });
      expect(document.replaceAll('eu-west-1', 'ap-northeast-1').length).toBeLessThanOrEqual(6144);
    }
  });

  it('is named after its stack and region, and its ARN is an output', () => {
    for (const policy of policyNames) {
      expect(policies.get(policy)?.name).toBe(`relay-${policy}-eu-west-1`);
      const output = `${policy[0]?.toUpperCase()}${policy.slice(1)}Policy`;
      const { Ref: id = '' } = (template.Outputs[output]?.Value ?? {}) as { Ref?: string };
      expect(template.Resources[id]?.Type).toBe('AWS::IAM::ManagedPolicy');
      expect(id.toLowerCase()).toContain(policy);
    }
  });
});
