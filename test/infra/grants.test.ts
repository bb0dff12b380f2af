import { beforeAll, describe, expect, test } from 'vitest';
import { functionNames, type FunctionName } from '../../infra/stack/function-descriptions.ts';
import { readable, resourcesOf, synthesize, type Template } from './synthesize.ts';

interface Statement {
  Effect: string;
  Action: string | string[];
  Resource: unknown;
  Condition?: unknown;
}

let template: Template;

beforeAll(() => {
  ({ template } = synthesize({ stage: 'test' }));
});

/** One line per action and resource, tables and log groups by name. */
function grantsOf(name: FunctionName): string[] {
  const policies = resourcesOf(template, 'AWS::IAM::Policy')
    .map(([, policy]) => policy.Properties)
    .filter((policy) => JSON.stringify(policy.Roles).includes(`Functions${name}Role`));
  const statements = policies.flatMap(
    (policy) => (policy.PolicyDocument as { Statement: Statement[] }).Statement,
  );
  return statements
    .flatMap((statement) =>
      [statement.Action]
        .flat()
        .flatMap((action) =>
          [statement.Resource].flat().map((resource) => `${statement.Effect} ${action} ${nameOf(resource)}`),
        ),
    )
    .toSorted();
}

function nameOf(resource: unknown): string {
  const text = readable(resource);
  const logicalId = /^<(\w+)\.Arn>$/.exec(text)?.[1];
  if (logicalId === undefined) return text;
  const tableName = template.Resources[logicalId]?.Properties.TableName;
  return typeof tableName === 'string' ? tableName : logicalId.replace(/[0-9A-F]{8}$/, '');
}

const configuration = ['channels', 'charges', 'plans', 'settings'].map(
  (table) => `Allow dynamodb:Scan relay-test-${table}`,
);
const ownLogs = (name: string): string[] => [
  `Allow logs:CreateLogStream Functions${name}Logs`,
  `Allow logs:PutLogEvents Functions${name}Logs`,
];
const ownAccount = '<AWS::Region>:<AWS::AccountId>';

describe('a function may do only what its description says', () => {
  test('chat reads keys, accounts, the configuration and the secrets of channels', () => {
    expect(grantsOf('chat')).toEqual([
      'Allow dynamodb:GetItem relay-test-accounts',
      'Allow dynamodb:GetItem relay-test-keys',
      ...configuration,
      ...ownLogs('chat'),
      `Allow secretsmanager:GetSecretValue arn:<AWS::Partition>:secretsmanager:${ownAccount}:secret:relay-test/*`,
      `Allow ssm:GetParameter arn:<AWS::Partition>:ssm:${ownAccount}:parameter/relay/relay-test/*`,
    ]);
  });

  test('catalog reads the configuration, and what an account may see of itself', () => {
    expect(grantsOf('catalog')).toEqual([
      'Allow dynamodb:GetItem relay-test-accounts',
      'Allow dynamodb:GetItem relay-test-keys',
      'Allow dynamodb:GetItem relay-test-quotas',
      'Allow dynamodb:Query relay-test-ledger',
      ...configuration,
      ...ownLogs('catalog'),
    ]);
  });

  test('no role has a managed policy, an inline policy or another principal than Lambda', () => {
    const roles = resourcesOf(template, 'AWS::IAM::Role').map(([, role]) => role.Properties);
    expect(roles).toHaveLength(functionNames.length);
    for (const role of roles) {
      expect(Object.keys(role)).toEqual(['AssumeRolePolicyDocument']);
      expect(role.AssumeRolePolicyDocument).toMatchObject({
        Statement: [{ Action: 'sts:AssumeRole', Principal: { Service: 'lambda.amazonaws.com' } }],
      });
    }
  });
});
