import { describe, expect, test } from 'vitest';
import { readable, resourcesOf, synthesize } from './synthesize.ts';

const certificateArn = 'arn:aws:acm:us-east-1:123456789012:certificate/12345678-1234-1234-1234-123456789012';

/** The secrets of one option, by a part of their ids. */
function secretIds(option: 'originSecrets' | 'sealKeys', numbers: number[]): string[] {
  const secrets = resourcesOf(synthesize({ [option]: numbers }).template, 'AWS::SecretsManager::Secret');
  const part = { originSecrets: 'Origin', sealKeys: 'SealKeys' }[option];
  return secrets.map(([id]) => id).filter((id) => id.startsWith(part));
}

describe('context', () => {
  test('without any, the stack is relay and its base URL is that of the distribution', () => {
    const { stackName, template } = synthesize();
    expect(stackName).toBe('relay');
    expect(readable(template.Outputs.BaseUrl?.Value)).toMatch(
      /^https:\/\/<FrontDoorDistribution\w+\.DomainName>\/v1$/,
    );
    const [[, distribution] = []] = resourcesOf(template, 'AWS::CloudFront::Distribution');
    expect(distribution?.Properties.DistributionConfig).not.toHaveProperty('Aliases');
    const [[, alarm] = []] = resourcesOf(template, 'AWS::CloudWatch::Alarm');
    expect(alarm?.Properties).not.toHaveProperty('AlarmActions');
    expect(resourcesOf(template, 'AWS::SNS::Topic')).toEqual([]);
    expect(resourcesOf(template, 'AWS::SecretsManager::Secret')).toHaveLength(2);
  });

  test('stage, disposable, domain and alarmEmail as the CLI passes them (all text) change the stack', () => {
    const { stackName, template } = synthesize({
      stage: 'try-1',
      disposable: 'true',
      domain: 'api.example.com',
      certificateArn,
      alarmEmail: 'ops@example.com',
      originSecrets: '[3]',
    });
    expect(stackName).toBe('relay-try-1');
    expect(template.Outputs.BaseUrl?.Value).toBe('https://api.example.com/v1');

    const tables = resourcesOf(template, 'AWS::DynamoDB::GlobalTable').map(([, table]) => table);
    for (const table of tables) {
      expect(table.Properties.TableName).toMatch(/^relay-try-1-/);
      expect(table.DeletionPolicy).toBe('Delete');
      expect(table.Properties.Replicas).toMatchObject([{ DeletionProtectionEnabled: false }]);
    }

    const [[, distribution] = []] = resourcesOf(template, 'AWS::CloudFront::Distribution');
    expect(distribution?.Properties.DistributionConfig).toMatchObject({
      Aliases: ['api.example.com'],
      ViewerCertificate: { AcmCertificateArn: certificateArn, MinimumProtocolVersion: 'TLSv1.2_2021' },
    });

    const [[topicId] = []] = resourcesOf(template, 'AWS::SNS::Topic');
    const subscriptions = resourcesOf(template, 'AWS::SNS::Subscription').map(([, item]) => item.Properties);
    expect(subscriptions).toMatchObject([{ Protocol: 'email', Endpoint: 'ops@example.com' }]);
    const alarms = resourcesOf(template, 'AWS::CloudWatch::Alarm').map(([, alarm]) => alarm.Properties);
    expect(alarms.length).toBeGreaterThan(0);
    for (const alarm of alarms) expect(alarm.AlarmActions).toEqual([{ Ref: topicId }]);
    // A topic with a policy of its own accepts alarms only when the policy says so.
    const [[, policy] = []] = resourcesOf(template, 'AWS::SNS::TopicPolicy');
    expect(policy?.Properties.PolicyDocument).toMatchObject({
      Statement: expect.arrayContaining([
        expect.objectContaining({
          Effect: 'Allow',
          Action: 'sns:Publish',
          Principal: { Service: 'cloudwatch.amazonaws.com' },
        }),
      ]),
    });

    const secrets = resourcesOf(template, 'AWS::SecretsManager::Secret');
    expect(secrets).toHaveLength(2);
    expect(secrets[0]?.[1].Properties.GenerateSecretString).toEqual({
      ExcludePunctuation: true,
      PasswordLength: 48,
    });
  });

  test.each(['originSecrets', 'sealKeys'] as const)(
    'each number in %s is a secret of its own, whose identity no other number changes',
    (option) => {
      const [first, second] = secretIds(option, [1, 2]);
      expect(second).toBeDefined();
      expect(secretIds(option, [1])).toEqual([first]);
      expect(secretIds(option, [2])).toEqual([second]);
    },
  );

  test.each([
    [{ stage: 'Prod' }, /context stage: found "Prod", wanted a lower-case name/],
    [{ stage: '1a' }, /context stage/],
    [{ stage: 'a'.repeat(22) }, /context stage/],
    [{ disposable: 'yes' }, /context disposable: found "yes", wanted true or false/],
    [{ domain: 'api.example.com' }, /context domain needs context certificateArn/],
    [{ certificateArn }, /context certificateArn needs context domain/],
    [
      { domain: 'api.example.com', certificateArn: certificateArn.replace('us-east-1', 'eu-west-1') },
      /us-east-1/,
    ],
    [
      { domain: 'https://api.example.com', certificateArn },
      /context domain: .*wanted a lower-case host name/,
    ],
    [{ alarmEmail: 'nobody' }, /context alarmEmail: .*wanted an e-mail address/],
    [{ originSecrets: '[]' }, /context originSecrets: .*wanted a list of 1 to 3 different whole numbers/],
    [{ originSecrets: '[1,1]' }, /context originSecrets/],
    [{ originSecrets: 'one' }, /context originSecrets/],
    [
      { reservedConcurrency: 0 },
      /context reservedConcurrency: found 0, wanted a whole number from 1 to 100000/,
    ],
    [{ reservedConcurrency: '1.5' }, /context reservedConcurrency/],
    [{ sealKeys: '[]' }, /context sealKeys: .*wanted a list of 1 to 10 different whole numbers/],
    [{ sealKeys: '[2,1]' }, /context sealKeys: found \[2,1\], wanted ascending numbers/],
  ])('%j is refused with a message that says what is wanted', (context, message) => {
    expect(() => synthesize(context)).toThrow(message);
  });
});
