import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const fixtures = path.join(import.meta.dirname, 'fixtures');

export interface FixtureTemplate {
  folder: string;
  remove(): void;
}

const asset = (name: string) => ({
  displayName: `Functions/${name}/Function/Code`,
  source: { path: path.join(fixtures, name) },
  destinations: { here: { objectKey: `${name}.zip` } },
});

/** Writes the output of `cdk synth` for a small stack: a table, a function behind a distribution, and `more` resources. */
export function writeTemplate(more: Record<string, unknown> = {}): FixtureTemplate {
  const folder = mkdtempSync(path.join(tmpdir(), 'relay-template-'));
  const files = { plain: asset('plain'), consumer: asset('consumer') };
  writeFileSync(path.join(folder, 'relay.assets.json'), JSON.stringify({ files }));
  const template = { Resources: { ...resources, ...more } };
  writeFileSync(path.join(folder, 'relay.template.json'), JSON.stringify(template));
  return { folder, remove: () => rmSync(folder, { recursive: true }) };
}

/** A function that runs one of the fixtures. */
export const functionResource = (fixture: string, variables: Record<string, string> = {}) => ({
  Type: 'AWS::Lambda::Function',
  Properties: {
    Code: { S3Bucket: { 'Fn::Sub': 'assets-${AWS::AccountId}' }, S3Key: `${fixture}.zip` },
    Handler: 'index.handler',
    Timeout: 30,
    MemorySize: 256,
    Role: { 'Fn::GetAtt': ['Role', 'Arn'] },
    Environment: { Variables: variables },
  },
});

const resources = {
  Role: { Type: 'AWS::IAM::Role' },
  Things: {
    Type: 'AWS::DynamoDB::GlobalTable',
    Properties: {
      TableName: 'relay-things',
      KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
      AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }],
      BillingMode: 'PAY_PER_REQUEST',
      StreamSpecification: { StreamViewType: 'NEW_AND_OLD_IMAGES' },
    },
  },
  Secret: { Type: 'AWS::SecretsManager::Secret', Properties: { GenerateSecretString: {} } },
  Plain: functionResource('plain', {
    FROM_TEMPLATE: 'template',
    NODE_OPTIONS: '--max-old-space-size=200',
    RELAY_LOCAL: '0',
    SECRET: '{{resolve:secretsmanager:relay-secret:SecretString:::}}',
  }),
  PlainUrl: {
    Type: 'AWS::Lambda::Url',
    Properties: { TargetFunctionArn: { 'Fn::GetAtt': ['Plain', 'Arn'] }, InvokeMode: 'BUFFERED' },
  },
  Distribution: {
    Type: 'AWS::CloudFront::Distribution',
    Properties: {
      DistributionConfig: {
        Origins: [
          {
            Id: 'plain',
            DomainName: {
              'Fn::Select': [2, { 'Fn::Split': ['/', { 'Fn::GetAtt': ['PlainUrl', 'FunctionUrl'] }] }],
            },
            OriginCustomHeaders: [
              {
                HeaderName: 'x-relay-origin',
                HeaderValue: '{{resolve:secretsmanager:relay-secret:SecretString:::}}',
              },
            ],
          },
        ],
        DefaultCacheBehavior: { TargetOriginId: 'plain' },
      },
    },
  },
};
