import { describe, expect, it } from 'vitest';
import { checkResources, type Template, createReferences } from '../../infra/local/template/template.ts';
import { StartError } from '../../infra/local/host/messages.ts';

const template: Template = {
  stackName: 'relay',
  parameters: { Stage: { Default: 'test' } },
  resources: {
    Keys: { Type: 'AWS::DynamoDB::GlobalTable', Properties: { TableName: 'relay-keys' } },
    Chat: { Type: 'AWS::Lambda::Function', Properties: {} },
    ChatUrl: {
      Type: 'AWS::Lambda::Url',
      Properties: { TargetFunctionArn: { 'Fn::GetAtt': ['Chat', 'Arn'] } },
    },
    One: { Type: 'AWS::SecretsManager::Secret', Properties: {} },
    Two: { Type: 'AWS::SecretsManager::Secret', Properties: {} },
    Topic: { Type: 'AWS::SNS::Topic', Properties: {} },
  },
  asset: () => ({ folder: '/nowhere', displayName: '' }),
};

const references = createReferences(template);
references.setAttribute('Keys', 'StreamArn', 'arn:stream');
const { resolve } = references;
const secretOf = (id: string) => ({
  'Fn::Join': ['', ['{{resolve:secretsmanager:', { Ref: id }, ':SecretString:::}}']],
});

describe('a template value resolves', () => {
  it.each<[what: string, value: unknown, expected: unknown]>([
    ['plain values unchanged', { a: [1, true, null, 'x'] }, { a: [1, true, null, 'x'] }],
    ['a reference to a table as its name', { Ref: 'Keys' }, 'relay-keys'],
    ['a reference to an unnamed function', { Ref: 'Chat' }, 'relay-Chat'],
    ['a parameter as its default', { Ref: 'Stage' }, 'test'],
    ['a pseudo parameter', { Ref: 'AWS::Region' }, 'us-east-1'],
    ['no value as an absent one', { a: { Ref: 'AWS::NoValue' }, b: [{ Ref: 'AWS::NoValue' }] }, { b: [] }],
    ['an ARN', { 'Fn::GetAtt': ['Keys', 'Arn'] }, 'arn:aws:dynamodb:us-east-1:000000000000:table/relay-keys'],
    ['an attribute that was set', { 'Fn::GetAtt': 'Keys.StreamArn' }, 'arn:stream'],
    [
      'an attribute of an ignored resource as a placeholder',
      { 'Fn::GetAtt': ['Topic', 'TopicName'] },
      'local-Topic-TopicName',
    ],
    ['a join', { 'Fn::Join': ['-', ['a', { Ref: 'Stage' }]] }, 'a-test'],
    ['a join of a split', { 'Fn::Join': ['+', { 'Fn::Split': ['-', 'a-b'] }] }, 'a+b'],
    [
      'the host name of a Function URL as CDK extracts it',
      { 'Fn::Select': [2, { 'Fn::Split': ['/', { 'Fn::GetAtt': ['ChatUrl', 'FunctionUrl'] }] }] },
      'chaturl.lambda-url.us-east-1.on.aws',
    ],
    ['a substitution', { 'Fn::Sub': 'assets-${AWS::StackName}-${Stage}' }, 'assets-relay-test'],
  ])('%s', (_, value, expected) => {
    expect(resolve(value)).toEqual(expected);
  });

  it('a secret to one random value, wherever it is used', () => {
    const one = resolve(secretOf('One'));
    expect(one).toMatch(/^[0-9a-f]{48}$/);
    expect(resolve(secretOf('Two'))).not.toBe(one);
    const both = {
      'Fn::Join': [
        '',
        [
          '{{resolve:secretsmanager:',
          { Ref: 'Two' },
          ':SecretString:::}},{{resolve:secretsmanager:',
          { Ref: 'One' },
          ':SecretString:::}}',
        ],
      ],
    };
    expect(resolve(both)).toBe(`${String(resolve(secretOf('Two')))},${String(one)}`);
  });

  it.each<[what: string, value: unknown, message: string]>([
    ['an unknown intrinsic', { 'Fn::ImportValue': 'x' }, 'unknown intrinsic function Fn::ImportValue'],
    ['a missing resource', { Ref: 'Nobody' }, 'refers to Nobody'],
    ['an attribute without a value', { 'Fn::GetAtt': ['Chat', 'SnapStart'] }, 'unknown attribute SnapStart'],
    ['another dynamic reference', '{{resolve:ssm:/a}}', 'unknown dynamic reference'],
  ])('not for %s', (_, value, message) => {
    expect(() => resolve(value)).toThrow(StartError);
    expect(() => resolve(value)).toThrow(message);
  });
});

describe('a template is rejected', () => {
  it('for a resource type that the local stack would silently omit', () => {
    const resources = { Queue: { Type: 'AWS::Kinesis::Stream' } };
    expect(() => checkResources(resources)).toThrow('unknown resource type AWS::Kinesis::Stream (Queue)');
  });

  it('for an unknown intrinsic anywhere in a resource that runs', () => {
    const resources = {
      Chat: { Type: 'AWS::Lambda::Function', Properties: { a: [{ b: { 'Fn::If': [] } }] } },
    };
    expect(() => checkResources(resources)).toThrow('unknown intrinsic function Fn::If (Chat)');
  });

  it('for a resource on a condition', () => {
    const resources = { Chat: { Type: 'AWS::Lambda::Function', Condition: 'Sometimes' } };
    expect(() => checkResources(resources)).toThrow('conditional');
  });

  it('but not for ignored types', () => {
    const resources = { Alarm: { Type: 'AWS::CloudWatch::Alarm', Properties: { a: { 'Fn::If': [] } } } };
    expect(() => checkResources(resources)).not.toThrow();
  });
});
