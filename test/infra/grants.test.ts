import { describe, expect, test } from 'vitest';
import { functionNames, type FunctionName } from '../../infra/stack/constructs/function-descriptions.ts';
import { readable, resourcesOf, synthesize } from './synthesize.ts';

interface Statement {
  Effect: string;
  Action: string | string[];
  Resource: unknown;
  Condition?: unknown;
}

const { template } = synthesize({ stage: 'test' });

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
  const objects = /^<(\w+)\.Arn>\/\*$/.exec(text)?.[1];
  if (objects !== undefined) return `objects of ${objects.replace(/[0-9A-F]{8}$/, '')}`;
  const logicalId = /^<(\w+)\.Arn>$/.exec(text)?.[1];
  if (logicalId === undefined) return text;
  const tableName = template.Resources[logicalId]?.Properties.TableName;
  return typeof tableName === 'string' ? tableName : logicalId.replace(/[0-9A-F]{8}$/, '');
}

const ownAccount = '<AWS::Region>:<AWS::AccountId>';
const channelSecrets = [
  `Allow secretsmanager:GetSecretValue arn:<AWS::Partition>:secretsmanager:${ownAccount}:secret:relay-test/*`,
  `Allow ssm:GetParameter arn:<AWS::Partition>:ssm:${ownAccount}:parameter/relay/relay-test/*`,
];
const ownLogs = (name: string): string[] => [
  `Allow logs:CreateLogStream Functions${name}Logs`,
  `Allow logs:PutLogEvents Functions${name}Logs`,
];
const keepsFailures = [
  'Allow s3:ListBucket TriggersFailures',
  'Allow s3:PutObject objects of TriggersFailures',
];
const stores = ['BatchGetItem', 'BatchWriteItem', 'PutItem', 'Query', 'UpdateItem'];
const readsKeys = ['accounts', 'keys'].map((table) => `Allow dynamodb:GetItem relay-test-${table}`);

describe('a function may do only what its description says', () => {
  test.each([
    ['chat', ['BatchGetItem', 'PutItem'], readsKeys],
    ['messages', ['BatchGetItem', 'PutItem'], readsKeys],
    ['responses', stores, [...readsKeys, 'Allow lambda:InvokeFunction FunctionsbackgroundFunction']],
    // Its calls were accepted by others, with the rows that it goes by.
    ['background', stores, keepsFailures],
  ] as const)(
    '%s reads the configuration and the secrets of channels, writes quotas, and charges late; keys only where calls come in',
    (name, stored, others) => {
      const grants = [
        'Allow dynamodb:BatchGetItem relay-test-quotas',
        'Allow dynamodb:BatchGetItem relay-test-runtime',
        'Allow dynamodb:GetItem relay-test-ledger',
        'Allow dynamodb:GetItem relay-test-quotas',
        'Allow dynamodb:GetItem relay-test-runtime',
        'Allow dynamodb:PutItem relay-test-ledger',
        'Allow dynamodb:PutItem relay-test-quotas',
        'Allow dynamodb:PutItem relay-test-runtime',
        'Allow dynamodb:UpdateItem relay-test-daily',
        'Allow dynamodb:UpdateItem relay-test-quotas',
        'Allow dynamodb:UpdateItem relay-test-runtime',
        ...others,
        ...stored.map((action) => `Allow dynamodb:${action} relay-test-responses`),
        ...ownLogs(name),
        ...channelSecrets,
      ];
      expect(grantsOf(name)).toEqual(grants.toSorted());
    },
  );

  test('sweeper reads what is registered, and reads and writes quotas', () => {
    expect(grantsOf('sweeper')).toEqual([
      'Allow dynamodb:BatchGetItem relay-test-quotas',
      'Allow dynamodb:Query relay-test-daily',
      'Allow dynamodb:Scan relay-test-quotas',
      'Allow dynamodb:UpdateItem relay-test-daily',
      'Allow dynamodb:UpdateItem relay-test-quotas',
      ...ownLogs('sweeper'),
    ]);
  });

  test('no role has a managed policy, an inline policy or another principal than Lambda, or CodeDeploy for shifts', () => {
    const roles = resourcesOf(template, 'AWS::IAM::Role');
    const ofShifts = roles.filter(([id]) => id.startsWith('Shift'));
    expect(ofShifts).toHaveLength(6);
    expect(roles).toHaveLength(functionNames.length + ofShifts.length);
    for (const [id, { Properties: role }] of roles) {
      const Service = id.startsWith('Shift') ? 'codedeploy.amazonaws.com' : 'lambda.amazonaws.com';
      expect(Object.keys(role)).toEqual(['AssumeRolePolicyDocument']);
      expect(role.AssumeRolePolicyDocument).toMatchObject({
        Statement: [{ Action: 'sts:AssumeRole', Principal: { Service } }],
      });
    }
  });
});
