import { describe, expect, test } from 'vitest';
import { functionNames, type FunctionName } from '../../infra/stack/constructs/function-descriptions.ts';
import { callingFunctions } from '../../infra/stack/constructs/function-descriptions.ts';
import { evaluate, type Statement as Granting } from '../access/policy-document.ts';
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
/** Includes secrets whose paths name no purpose. */
const secretsOf = (others: string[]): string[] =>
  Object.entries({
    'secretsmanager:GetSecretValue': `secretsmanager:${ownAccount}:secret:relay-test`,
    'ssm:GetParameter': `ssm:${ownAccount}:parameter/relay/relay-test`,
  }).flatMap(([action, place]) => {
    const denied = others.map((purpose) => `Deny ${action} arn:<AWS::Partition>:${place}/${purpose}/*`);
    return [`Allow ${action} arn:<AWS::Partition>:${place}/*`].concat(denied);
  });
const channelSecrets = secretsOf(['payments', 'alerts', 'console', 'canary']);
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

describe('the permissions of a function are those of its description', () => {
  test.each([
    ['chat', ['BatchGetItem', 'PutItem'], readsKeys],
    ['messages', ['BatchGetItem', 'PutItem'], readsKeys],
    ['responses', stores, [...readsKeys, 'Allow lambda:InvokeFunction FunctionsbackgroundFunction']],
    // Other functions accepted its calls, with the rows that it uses.
    ['background', stores, keepsFailures],
  ] as const)(
    '%s reads the configuration and the secrets of channels, writes quotas, and charges late, and reads keys only if it receives calls',
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

  test('sweeper reads registered reservations, and reads and writes quotas', () => {
    expect(grantsOf('sweeper')).toEqual([
      'Allow dynamodb:BatchGetItem relay-test-quotas',
      'Allow dynamodb:Query relay-test-daily',
      'Allow dynamodb:Scan relay-test-quotas',
      'Allow dynamodb:UpdateItem relay-test-daily',
      'Allow dynamodb:UpdateItem relay-test-quotas',
      ...ownLogs('sweeper'),
    ]);
  });

  test('no role has a managed policy, an inline policy or a principal other than Lambda, or CodeDeploy for shifts', () => {
    const roles = resourcesOf(template, 'AWS::IAM::Role');
    const ofShifts = roles.filter(([id]) => id.startsWith('Shift'));
    expect(ofShifts).toHaveLength(10);
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

describe('a secret is read by the functions of its purpose', () => {
  const people = { viewer: ['viewers'] };
  const oidc = { issuer: 'https://issuer.example.com', clientId: 'relay' };
  const made = (clientSecret: string, key: string, unboundSecrets: boolean) =>
    synthesize({
      unboundSecrets,
      console: { oidc: { ...oidc, clientSecret }, roles: people },
      canary: { model: 'm', key },
    }).template;
  const [open, closed] = [
    made('ssm:/relay/relay/oidc', 'secretsmanager:relay/canary', true),
    made('ssm:/relay/relay/console/oidc', 'secretsmanager:relay/canary/key', false),
  ];
  const roleOf: Record<string, string> = { console: 'ConsoleRole', canary: 'CanarycanaryRole' };
  const readers: Record<string, string[]> = {
    channels: [...callingFunctions, 'config', 'alerts', 'console'],
    search: [...callingFunctions],
    payments: ['payments', 'selfservice', 'alerts'],
    alerts: ['notify'],
    console: ['console'],
    canary: ['canary'],
  };
  const stored = (path: string) => [
    { action: 'ssm:GetParameter', resource: `ssm:${ownAccount}:parameter/relay/relay/${path}` },
    {
      action: 'secretsmanager:GetSecretValue',
      resource: `secretsmanager:${ownAccount}:secret:relay/${path}-AbCdEf`,
    },
  ];
  const secretStatements = (made: typeof template, name: string): Granting[] =>
    resourcesOf(made, 'AWS::IAM::Policy')
      .filter(([id]) => id.startsWith(roleOf[name] ?? `Functions${name}Role`))
      .flatMap(([, { Properties }]) => (Properties.PolicyDocument as { Statement: Statement[] }).Statement)
      .filter(({ Action }) => /^(ssm|secretsmanager):/.test([Action].flat()[0] ?? ''))
      .map(({ Effect, Action, Resource }) => ({
        Effect: Effect === 'Deny' ? 'Deny' : 'Allow',
        Action,
        Resource: [Resource].flat().map(readable),
      }));
  const names = [...functionNames, 'console', 'canary'];
  const readersOf = (made: typeof template, { action, resource }: { action: string; resource: string }) =>
    names.filter((name) => {
      const access = { action, resource: `arn:<AWS::Partition>:${resource}`, keys: {} };
      return evaluate(secretStatements(made, name), access).allowed;
    });

  test.each(Object.keys(readers))('of %s only, whether or not old ones are still read', (purpose) => {
    for (const template of [open, closed])
      for (const access of stored(`${purpose}/a.example.com/key`))
        expect(readersOf(template, access)).toEqual(
          [...functionNames, 'console', 'canary'].filter((name) => readers[purpose]?.includes(name)),
        );
  });

  test('and one whose path names none by those whose rows may name it, until the option is false; the options\u2019 own by none of these', () => {
    const [old] = stored('old');
    const [oidcOld] = stored('oidc');
    const [, canaryOld] = stored('canary');
    if (!old || !oidcOld || !canaryOld) throw new Error('no access');
    const ofRows = names.filter((name) =>
      ['channels', 'payments', 'alerts'].some((purpose) => readers[purpose]?.includes(name)),
    );
    expect(readersOf(open, old)).toEqual(ofRows);
    expect(readersOf(closed, old)).toEqual([]);
    expect(readersOf(open, oidcOld)).toEqual(['console']);
    expect(readersOf(open, canaryOld)).toEqual(['canary']);
  });
});
