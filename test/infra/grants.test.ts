import { beforeAll, describe, expect, test } from 'vitest';
import { functionNames, type FunctionName } from '../../infra/stack/constructs/function-descriptions.ts';
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
  const stream = /^<(\w+)\.StreamArn>$/.exec(text)?.[1];
  if (stream !== undefined) return `stream of ${String(template.Resources[stream]?.Properties.TableName)}`;
  const objects = /^<(\w+)\.Arn>\/\*$/.exec(text)?.[1];
  if (objects !== undefined) return `objects of ${objects.replace(/[0-9A-F]{8}$/, '')}`;
  const logicalId = /^<(\w+)\.Arn>$/.exec(text)?.[1];
  if (logicalId === undefined) return text;
  const tableName = template.Resources[logicalId]?.Properties.TableName;
  return typeof tableName === 'string' ? tableName : logicalId.replace(/[0-9A-F]{8}$/, '');
}

function variablesOf(name: FunctionName): string[] {
  const [, lambda] =
    resourcesOf(template, 'AWS::Lambda::Function').find(([id]) =>
      id.startsWith(`Functions${name}Function`),
    ) ?? [];
  const { Variables } = (lambda?.Properties.Environment ?? { Variables: {} }) as {
    Variables: Record<string, unknown>;
  };
  return Object.keys(Variables);
}

const channelSecrets = (): string[] => [
  `Allow secretsmanager:GetSecretValue arn:<AWS::Partition>:secretsmanager:${ownAccount}:secret:relay-test/*`,
  `Allow ssm:GetParameter arn:<AWS::Partition>:ssm:${ownAccount}:parameter/relay/relay-test/*`,
];
const ownLogs = (name: string): string[] => [
  `Allow logs:CreateLogStream Functions${name}Logs`,
  `Allow logs:PutLogEvents Functions${name}Logs`,
];
/** What an event source mapping does with the role of its function. */
const readsStream = (table: string): string[] =>
  ['DescribeStream', 'GetRecords', 'GetShardIterator', 'ListStreams'].map(
    (action) => `Allow dynamodb:${action} stream of relay-test-${table}`,
  );
const keepsFailures = [
  'Allow s3:ListBucket TriggersFailures',
  'Allow s3:PutObject objects of TriggersFailures',
];
const streamGrants = (table: string): string[] => [...readsStream(table), ...keepsFailures];
const stores = ['BatchGetItem', 'BatchWriteItem', 'PutItem', 'Query', 'UpdateItem'];
const readsKeys = ['accounts', 'keys'].map((table) => `Allow dynamodb:GetItem relay-test-${table}`);
const ownAccount = '<AWS::Region>:<AWS::AccountId>';

describe('a function may do only what its description says', () => {
  test.each([
    ['chat', ['BatchGetItem', 'PutItem'], readsKeys],
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
        ...channelSecrets(),
      ];
      expect(grantsOf(name)).toEqual(grants.toSorted());
    },
  );

  test('catalog reads the configuration, and the account, balance and ledger of a key', () => {
    const grants = [
      'Allow dynamodb:BatchGetItem relay-test-runtime',
      'Allow dynamodb:GetItem relay-test-accounts',
      'Allow dynamodb:GetItem relay-test-keys',
      'Allow dynamodb:GetItem relay-test-quotas',
      'Allow dynamodb:GetItem relay-test-runtime',
      'Allow dynamodb:Query relay-test-daily',
      'Allow dynamodb:Query relay-test-ledger',
      ...ownLogs('catalog'),
    ];
    expect(grantsOf('catalog')).toEqual(grants);
  });

  test('payments reads the configuration, accounts and its secrets, and writes payments and grants', () => {
    const grants = [
      'Allow dynamodb:BatchGetItem relay-test-runtime',
      'Allow dynamodb:GetItem relay-test-accounts',
      'Allow dynamodb:GetItem relay-test-payments',
      'Allow dynamodb:PutItem relay-test-grants',
      'Allow dynamodb:PutItem relay-test-payments',
      ...ownLogs('payments'),
      ...channelSecrets(),
    ];
    expect(grantsOf('payments')).toEqual(grants);
  });

  test('config reads the configuration, publishes it, and marks the rows of operators', () => {
    const compiled = ['channels', 'charges', 'plans', 'settings'];
    const grants = [
      ...compiled.map((table) => `Allow dynamodb:Scan relay-test-${table}`),
      ...[...compiled, 'keys', 'accounts', 'runtime'].map(
        (table) => `Allow dynamodb:UpdateItem relay-test-${table}`,
      ),
      'Allow dynamodb:BatchGetItem relay-test-accounts',
      'Allow dynamodb:BatchGetItem relay-test-runtime',
      'Allow dynamodb:PutItem relay-test-runtime',
      ...[...compiled, 'keys', 'accounts', 'runtime'].flatMap(readsStream),
      ...ownLogs('config'),
      ...channelSecrets(),
    ];
    expect(grantsOf('config')).toEqual(grants.toSorted());
  });

  test('ledger puts ledger rows and counts them', () => {
    const grants = [
      'Allow dynamodb:PutItem relay-test-ledger',
      'Allow dynamodb:UpdateItem relay-test-daily',
      'Allow dynamodb:UpdateItem relay-test-runtime',
      ...ownLogs('ledger'),
      ...streamGrants('quotas'),
    ];
    expect(grantsOf('ledger')).toEqual(grants.toSorted());
  });

  test('grants reads and marks grants, puts and counts ledger rows and adds to balances', () => {
    const grants = [
      'Allow dynamodb:GetItem relay-test-ledger',
      'Allow dynamodb:GetItem relay-test-quotas',
      'Allow dynamodb:PutItem relay-test-ledger',
      'Allow dynamodb:Scan relay-test-grants',
      'Allow dynamodb:UpdateItem relay-test-daily',
      'Allow dynamodb:UpdateItem relay-test-grants',
      'Allow dynamodb:UpdateItem relay-test-quotas',
      ...ownLogs('grants'),
      ...streamGrants('grants'),
    ];
    expect(grantsOf('grants')).toEqual(grants.toSorted());
  });

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

  test('alerts reads accounts, keys and balances, and writes marks and notices', () => {
    const grants = [
      'Allow dynamodb:BatchGetItem relay-test-quotas',
      'Allow dynamodb:BatchGetItem relay-test-runtime',
      'Allow dynamodb:GetItem relay-test-accounts',
      'Allow dynamodb:GetItem relay-test-quotas',
      'Allow dynamodb:PutItem relay-test-runtime',
      'Allow dynamodb:Scan relay-test-accounts',
      'Allow dynamodb:Scan relay-test-keys',
      'Allow dynamodb:UpdateItem relay-test-runtime',
      ...ownLogs('alerts'),
      ...readsStream('quotas'),
    ];
    expect(grantsOf('alerts')).toEqual(grants.toSorted());
  });

  const notifies = [
    'Allow dynamodb:BatchGetItem relay-test-runtime',
    'Allow dynamodb:GetItem relay-test-accounts',
    'Allow dynamodb:UpdateItem relay-test-runtime',
    ...ownLogs('notify'),
    ...streamGrants('runtime'),
    ...channelSecrets(),
  ];

  test('notify reads accounts and notices and the secret that signs them, and sends nothing by itself', () => {
    expect(grantsOf('notify')).toEqual(notifies.toSorted());
    expect(variablesOf('notify')).not.toContain('ALERT_TOPIC');
  });

  test('notify publishes to the topic and mails from the sender where the deployment has them', () => {
    ({ template } = synthesize({
      stage: 'test',
      alarmEmail: 'ops@example.com',
      alertSender: 'relay@mail.example.com',
    }));
    const identity = `arn:<AWS::Partition>:ses:${ownAccount}:identity`;
    const grants = [
      ...notifies,
      'Allow sns:Publish <AlarmsTopic3A2DFEBA>',
      `Allow ses:SendEmail ${identity}/relay@mail.example.com`,
      `Allow ses:SendEmail ${identity}/mail.example.com`,
    ];
    expect(grantsOf('notify')).toEqual(grants.toSorted());
    expect(variablesOf('notify')).toEqual(expect.arrayContaining(['ALERT_TOPIC', 'ALERT_SENDER']));
    expect(JSON.stringify(template)).toContain(
      '{"StringEquals":{"ses:FromAddress":"relay@mail.example.com"}}',
    );
    ({ template } = synthesize({ stage: 'test' }));
  });

  test('no role has a managed policy, an inline policy or another principal than Lambda, or CodeDeploy for shifts', () => {
    const roles = resourcesOf(template, 'AWS::IAM::Role');
    const ofShifts = roles.filter(([id]) => id.startsWith('Shift'));
    expect(ofShifts).toHaveLength(4);
    expect(roles).toHaveLength(functionNames.length + ofShifts.length);
    for (const [id, { Properties: role }] of roles) {
      const Service = id.startsWith('Shift') ? 'codedeploy.amazonaws.com' : 'lambda.amazonaws.com';
      expect(Object.keys(role)).toEqual(['AssumeRolePolicyDocument']);
      expect(role.AssumeRolePolicyDocument).toMatchObject({
        Statement: [{ Action: 'sts:AssumeRole', Principal: { Service } }],
      });
    }
  });

  test('CodeDeploy may move the alias of the one function that it deploys', () => {
    const policies = resourcesOf(template, 'AWS::IAM::Policy').filter(([id]) => id.startsWith('Shift'));
    for (const [id, { Properties }] of policies) {
      const name = /^Shift([a-z]+)Role/.exec(id)?.[1];
      const { Statement } = Properties.PolicyDocument as {
        Statement: { Action: unknown; Resource: unknown }[];
      };
      expect(Statement.map(({ Action }) => Action)).toEqual([
        ['lambda:GetAlias', 'lambda:GetProvisionedConcurrencyConfig', 'lambda:UpdateAlias'],
        'cloudwatch:DescribeAlarms',
      ]);
      const functions = [...JSON.stringify(Statement[0]?.Resource).matchAll(/Functions([a-z]+)Function/g)];
      expect(functions.map(([, found]) => found)).toEqual([name, name]);
    }
  });
});
