/** The policy of the role that deploys: all that the resources of the template need, and no customers' rows. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { withoutConditions } from './loopback/conditions.ts';
import { resolveTemplate } from './loopback/resolve-template.ts';
import { allows } from './loopback/rules/policies.ts';
import type { Resource } from './loopback/template.ts';
import { optionSets } from './option-sets.ts';
import { synthesize } from './synthesize.ts';

/**
 * Of CloudFormation's published schemas, August 2026: what creating, reading, updating and deleting one of a type calls. The
 * schemas of budgets, records and deployment groups name no calls; theirs are of the user guides.
 */
const handlerActions = JSON.parse(
  readFileSync(join(import.meta.dirname, 'handler-actions.json'), 'utf8'),
) as Record<string, string[]>;

const page = join(import.meta.dirname, '..', '..', 'docs', 'deployer-policy.json');
const policy = JSON.parse(readFileSync(page, 'utf8')) as { Statement: Record<string, unknown>[] };

/** Calls of handlers for properties that no relay sets; with a type, of its handlers alone. */
const unused: [RegExp, string, string?][] = [
  [/^application-autoscaling:/, 'tables are on demand'],
  [/^cloudwatch:PutMetricData$/, 'tables are on demand'],
  [
    /^dynamodb:(BatchWriteItem|DeleteItem|GetItem|PutItem|Query|Scan|UpdateItem)$/,
    'a replica in a second region',
  ],
  [/^iam:CreateServiceLinkedRole$/, 'a replica in a second region'],
  [/^(kinesis:|dynamodb:.*Kinesis)/, 'no stream goes to Kinesis'],
  [/^kms:/, 'variables are encrypted by AWS', 'AWS::Lambda::Function'],
  [/^kms:/, 'filters are encrypted by AWS', 'AWS::Lambda::EventSourceMapping'],
  [/^kms:ListAliases$/, 'the key of tables is given by its ARN'],
  [/^(logs|s3):.*Kms/, 'keys are those of AWS'],
  [/^(ec2|elasticfilesystem|s3files):/, 'no VPC, no file system'],
  [
    /^lambda:(GetCodeSigningConfig|GetLayerVersion|PassCapacityProvider)$/,
    'no layers, no signing, no instances',
  ],
  [/^iam:.*(Group|User)Policy$/, 'policies are those of roles'],
  [/^iam:(At|De)tachRolePolicy$/, 'those of operators are attached by people', 'AWS::IAM::ManagedPolicy'],
  [/^cloudfront:.*(ConnectionGroup|VpcOrigin|StagingConfig)$/, 'one distribution with public origins'],
  [/^(s3tables:|s3:.*(Metadata|Table))/, 'one bucket of objects'],
  [
    /^s3:(Put|Delete)(Bucket)?(Accelerate|Analytics|Abac|Acl|CORS|Cors|Logging|Metrics|Notification|Object|Replication|Versioning|Website|Intelligent|Inventory)/i,
    'one bucket without these',
  ],
  [/^s3:REST/, 'no action of IAM'],
  [
    /^(firehose:|logs:.*(Delivery|Index|DataProtection|ResourcePolicy|Bearer|DeletionProtection))/,
    'a plain log group',
  ],
  [/^secretsmanager:(Replicate|Remove)/, 'secrets of one region'],
  [/^sns:PutDataProtectionPolicy$/, 'a topic without one'],
];

/** Types whose handlers call IAM for what the relay sets. */
const callsIam = new Set([
  'AWS::CodeDeploy::DeploymentGroup',
  'AWS::IAM::ManagedPolicy',
  'AWS::IAM::Policy',
  'AWS::IAM::Role',
  'AWS::Lambda::Function',
]);

const shiftOf = ({ updatePolicy }: Pick<Resource, 'updatePolicy'>) =>
  updatePolicy['CodeDeployLambdaAliasUpdate'] as Record<string, string> | undefined;

/** A key of the account's own that encrypts a table. */
const keyOf = ({ properties }: Pick<Resource, 'properties'>): string | undefined =>
  (properties['Replicas'] as { SSESpecification?: { KMSMasterKeyId?: string } }[] | undefined)?.[0]
    ?.SSESpecification?.KMSMasterKeyId;

function actionsOf({ type, properties, updatePolicy }: Resource): string[] {
  const actions = handlerActions[type] ?? [`no actions of ${type} in handler-actions.json`];
  return actions.filter(
    (action) =>
      (!action.startsWith('kms:') || keyOf({ properties }) !== undefined) &&
      !unused.some(([pattern, , only = type]) => only === type && pattern.test(action)) &&
      (!action.startsWith('iam:') || callsIam.has(type)) &&
      (type !== 'AWS::Lambda::Alias' ||
        !action.startsWith('codedeploy:') ||
        shiftOf({ updatePolicy }) !== undefined),
  );
}

/** What the calls for a resource are about, where that is not the resource itself. */
function targetOf(action: string, resource: Resource): string {
  const { type, properties, arn } = resource;
  const first = (value: unknown): string => String([value].flat()[0]);
  if (action.startsWith('codedeploy:')) return targetOfShift(action, resource);
  if (action.startsWith('kms:')) return keyOf(resource) ?? '';
  if (type.startsWith('Custom::')) return first(properties['ServiceToken']);
  if (action.startsWith('s3:GetObject') && type === 'AWS::Lambda::Function')
    return 'arn:aws:s3:::cdk-hnb659fds-assets-000000000000-us-east-1/bundle.zip';
  if (action === 'iam:PassRole') return first(properties['Role'] ?? properties['ServiceRoleArn']);
  if (type === 'AWS::IAM::Policy') return `arn:aws:iam::000000000000:role/${first(properties['Roles'])}`;
  if (type === 'AWS::Lambda::Permission') return first(properties['FunctionName']);
  if (type === 'AWS::Lambda::EventInvokeConfig')
    return `arn:aws:lambda:us-east-1:000000000000:function:${first(properties['FunctionName'])}`;
  if (type === 'AWS::S3::BucketPolicy') return `arn:aws:s3:::${first(properties['Bucket'])}`;
  if (type === 'AWS::Logs::MetricFilter')
    return `arn:aws:logs:us-east-1:000000000000:log-group:${first(properties['LogGroupName'])}`;
  if (type === 'AWS::SNS::TopicPolicy') return first(properties['Topics']);
  if (type === 'AWS::Route53::RecordSet')
    return action === 'route53:GetChange'
      ? 'arn:aws:route53:::change/C1'
      : `arn:aws:route53:::hostedzone/${first(properties['HostedZoneId'])}`;
  return type === 'AWS::SNS::Subscription' ? first(properties['TopicArn']) : arn;
}

/** An alias that moves calls CodeDeploy about the group that its update policy names. */
function targetOfShift(action: string, resource: Resource): string {
  const { physicalId, properties, type } = resource;
  const arnOf = (path: string): string => `arn:aws:codedeploy:us-east-1:000000000000:${path}`;
  if (type === 'AWS::CodeDeploy::Application') return arnOf(`application:${physicalId}`);
  if (type === 'AWS::CodeDeploy::DeploymentGroup')
    return arnOf(`deploymentgroup:${String(properties['ApplicationName'])}/${physicalId}`);
  // IAM knows no resource of it.
  if (action === 'codedeploy:StopDeployment') return '*';
  if (action === 'codedeploy:GetDeploymentConfig')
    return arnOf('deploymentconfig:CodeDeployDefault.LambdaLinear10PercentEvery1Minute');
  const { ApplicationName, DeploymentGroupName } = shiftOf(resource) ?? {};
  return arnOf(`deploymentgroup:${String(ApplicationName)}/${String(DeploymentGroupName)}`);
}

let resources: Resource[];
/** What CloudFormation calls to fill in a template: action and resource. */
let lookups: [action: string, target: string][];

const matchesOf = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)].map(([, found]) => String(found));

/** References by name. Those to secrets of the template itself are resolved by what their handler may. */
const lookupsOf = (template: unknown): [string, string][] => {
  const text = JSON.stringify(template);
  return [
    ...matchesOf(text, /\{\{resolve:secretsmanager:([^:{}"]+):SecretString/g).map(
      (name): [string, string] => [
        'secretsmanager:GetSecretValue',
        `arn:aws:secretsmanager:us-east-1:000000000000:secret:${name}-AbCdEf`,
      ],
    ),
    ...matchesOf(text, /"Fn::GetStackOutput":\{[^}]*"StackName":"([^"]+)"/g).map((name): [string, string] => [
      'cloudformation:DescribeStacks',
      `arn:aws:cloudformation:us-east-1:000000000000:stack/${name}/0a1b2c3d`,
    ]),
  ];
};

beforeAll(() => {
  const synthesized = Object.values(optionSets).map((options) => synthesize(options));
  lookups = synthesized.flatMap(({ template, edge }) =>
    [template, ...Object.values(edge)].flatMap(lookupsOf),
  );
  resources = synthesized.flatMap(({ stackName, template, edge }) => {
    return Object.entries(Object.assign(edge, { [stackName]: template })).flatMap(([stack, each]) => {
      const context = { parameters: new Map(), region: 'us-east-1', stackOutput: () => 'an output' };
      const place = { account: '000000000000', region: 'us-east-1', stack, stackId: stack };
      return Array.from(resolveTemplate(withoutConditions(each, context), place).resources.values());
    });
  });
});

describe('docs/deployer-policy.json', () => {
  it('allows each call that CloudFormation makes for a resource of the template', () => {
    const refused = resources.flatMap((resource) =>
      actionsOf(resource)
        .filter((action) => !allows(policy, action, targetOf(action, resource)))
        .map((action) => `${action} on ${targetOf(action, resource)}`),
    );
    expect([...new Set(refused)]).toEqual([]);
  });

  it('allows what CloudFormation looks up to fill in the templates: secrets and outputs by name', () => {
    const found = new Set(lookups.map(([action]) => action));
    expect(found).toEqual(new Set(['secretsmanager:GetSecretValue', 'cloudformation:DescribeStacks']));
    expect(lookups.filter(([action, target]) => !allows(policy, action, target))).toEqual([]);
  });

  it('uses keys through DynamoDB alone, and gives them to nobody but AWS', () => {
    const ofKeys = policy.Statement.filter(({ Action }) => String(Action).includes('kms:'));
    expect(ofKeys.length).toBeGreaterThan(0);
    for (const { Action, Condition } of ofKeys)
      expect(Condition).toEqual({
        StringLike: { 'kms:ViaService': 'dynamodb.*.amazonaws.com' },
        ...(String(Action).includes('Grant') && { Bool: { 'kms:GrantIsForAWSResource': 'true' } }),
      });
  });

  it('has no statement that no resource needs, and fits into one managed policy', () => {
    const needed = (statement: Record<string, unknown>) =>
      lookups.some(([action, target]) => allows({ Statement: [statement] }, action, target)) ||
      resources.some((resource) =>
        actionsOf(resource).some((action) =>
          allows({ Statement: [statement] }, action, targetOf(action, resource)),
        ),
      );
    const idle = policy.Statement.filter((statement) => !needed(statement)).map(({ Sid }) => Sid);
    // CloudFormation reads the template's parameter with it.
    expect(idle).toEqual(['VersionOfBootstrap']);
    expect(JSON.stringify(policy).length).toBeLessThanOrEqual(6_144);
  });

  it.each([
    ['dynamodb:GetItem', 'arn:aws:dynamodb:us-east-1:000000000000:table/relay-keys'],
    ['dynamodb:UpdateItem', 'arn:aws:dynamodb:us-east-1:000000000000:table/relay-quotas'],
    ['dynamodb:DeleteTable', 'arn:aws:dynamodb:us-east-1:000000000000:table/orders'],
    ['lambda:InvokeFunction', 'arn:aws:lambda:us-east-1:000000000000:function:relay-chat'],
    ['iam:PutRolePolicy', 'arn:aws:iam::000000000000:role/Admin'],
    ['iam:CreateUser', 'arn:aws:iam::000000000000:user/relay'],
    ['iam:CreatePolicyVersion', 'arn:aws:iam::000000000000:policy/Admin'],
    ['codedeploy:CreateDeployment', 'arn:aws:codedeploy:us-east-1:000000000000:deploymentgroup:Shop/Shop'],
    [
      'secretsmanager:GetSecretValue',
      'arn:aws:secretsmanager:us-east-1:000000000000:secret:relay/openai-AbCdEf',
    ],
    ['ssm:GetParameter', 'arn:aws:ssm:us-east-1:000000000000:parameter/relay/relay/openai'],
    ['s3:DeleteObject', 'arn:aws:s3:::relay-failures/x'],
  ])('does not allow %s on %s', (action, resource) => {
    expect(allows(policy, action, resource)).toBe(false);
  });
});
