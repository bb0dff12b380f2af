/** What each option of a stage changes in the template. */
import { describe, expect, test } from 'vitest';
import { functionNames } from '../../infra/stack/constructs/function-descriptions.ts';
import { checkResources } from '../../infra/local/template/template.ts';
import { optionSets } from './option-sets.ts';
import { readable, resourcesOf, synthesize, type Template } from './synthesize.ts';

const topicArn = 'arn:aws:sns:eu-central-1:123456789012:ops';
const keyArn = 'arn:aws:kms:eu-central-1:123456789012:key/12345678-1234-1234-1234-123456789012';
const certificateArn = 'arn:aws:acm:us-east-1:123456789012:certificate/12345678-1234-1234-1234-123456789012';

const shortName = (logicalId: string): string => logicalId.replace(/^Functions([a-z]+)Function.*$/, '$1');

/** A value of each function, by its short name; functions without it are left out. */
function ofFunctions(template: Template, valueOf: (properties: Record<string, unknown>) => unknown) {
  const values = resourcesOf(template, 'AWS::Lambda::Function').map(([id, { Properties }]) => [
    shortName(id),
    valueOf(Properties),
  ]);
  return Object.fromEntries(values.filter(([, value]) => value !== undefined));
}

const variable =
  (name: string) =>
  ({ Environment }: Record<string, unknown>): unknown =>
    (Environment as { Variables: Record<string, unknown> }).Variables[name];

interface PolicyDocument {
  Statement: Record<string, unknown>[];
}

const calls = ({ Action }: Record<string, unknown>, service: string): boolean =>
  [Action].flat().some((action) => String(action).startsWith(service));

const one = (template: Template, type: string): Record<string, unknown> => {
  const found = resourcesOf(template, type);
  expect(found).toHaveLength(1);
  return found[0]?.[1].Properties ?? {};
};

describe('the option', () => {
  test('memory sets the megabytes of a function, and the bound of its heap at half of them', () => {
    const { template } = synthesize({ memory: { chat: 512, sweeper: 128 } });
    const megabytes = ofFunctions(template, ({ MemorySize }) => MemorySize);
    expect(megabytes).toMatchObject({ chat: 512, responses: 256, sweeper: 128, catalog: 256 });
    expect(ofFunctions(template, variable('NODE_OPTIONS'))).toEqual({
      background: '--max-old-space-size=128 --max-semi-space-size=4',
      chat: '--max-old-space-size=256 --max-semi-space-size=4',
      responses: '--max-old-space-size=128 --max-semi-space-size=4',
    });
  });

  test('logRetentionDays is that of every function’s log group', () => {
    const groups = resourcesOf(synthesize({ logRetentionDays: 90 }).template, 'AWS::Logs::LogGroup');
    expect(new Set(groups.map(([, { Properties }]) => Properties.RetentionInDays))).toEqual(new Set([90]));
  });

  test('limits is known to the function that publishes the configuration, alone', () => {
    const limits = { account_rpm: 60, request_seconds: 300 };
    const { template } = synthesize({ limits });
    expect(ofFunctions(template, variable('RELAY_LIMITS'))).toEqual({ config: JSON.stringify(limits) });
  });

  test('tracing tells the functions that answer where traces go; the headers come from a secret, at deployment', () => {
    const { template } = synthesize({
      tracing: { endpoint: 'https://otel.example.com:4318', headersSecret: 'otel', share: 0.1 },
    });
    const answering = (value: unknown) => ({ background: value, chat: value, responses: value });
    const endpoints = ofFunctions(template, variable('OTEL_EXPORTER_OTLP_ENDPOINT'));
    expect(endpoints).toEqual(answering('https://otel.example.com:4318'));
    const headers = ofFunctions(template, variable('OTEL_EXPORTER_OTLP_HEADERS'));
    expect(headers).toEqual(answering('{{resolve:secretsmanager:otel:SecretString:::}}'));
    expect(ofFunctions(template, variable('OTEL_TRACES_SAMPLER_ARG'))).toEqual(answering('0.1'));
  });

  test('alarms off leaves no alarm, no widget of them and no shifting, and the topic of notices', () => {
    const { template } = synthesize({ alarms: false, alarmEmail: 'ops@example.com' });
    expect(resourcesOf(template, 'AWS::CloudWatch::Alarm')).toEqual([]);
    // A deployment group without an alarm would shift calls slowly, and never back.
    expect(resourcesOf(template, 'AWS::CodeDeploy::DeploymentGroup')).toEqual([]);
    expect(JSON.stringify(template)).not.toContain('CodeDeployLambdaAliasUpdate');
    expect(readable(one(template, 'AWS::CloudWatch::Dashboard').DashboardBody)).not.toContain('"alarm"');
    expect(ofFunctions(template, variable('ALERT_TOPIC'))).toHaveProperty('notify');
  });

  test('alarmTopicArn receives alarms and notices, and no topic is made', () => {
    const { template } = synthesize({ region: 'eu-central-1', alarmTopicArn: topicArn });
    expect(resourcesOf(template, 'AWS::SNS::Topic')).toEqual([]);
    const alarms = resourcesOf(template, 'AWS::CloudWatch::Alarm');
    expect(alarms.length).toBeGreaterThan(0);
    for (const [, { Properties }] of alarms) expect(Properties.AlarmActions).toEqual([topicArn]);
    expect(ofFunctions(template, variable('ALERT_TOPIC'))).toEqual({ notify: topicArn });
  });

  test('encryptionKeyArn encrypts every table, and functions may use the key through DynamoDB alone', () => {
    const { template } = synthesize({ region: 'eu-central-1', encryptionKeyArn: keyArn });
    for (const [, { Properties }] of resourcesOf(template, 'AWS::DynamoDB::GlobalTable'))
      expect(Properties.Replicas).toMatchObject([{ SSESpecification: { KMSMasterKeyId: keyArn } }]);
    // Of functions and of people, apart from those of deployments, which read no table.
    const policies = ['AWS::IAM::Policy', 'AWS::IAM::ManagedPolicy']
      .flatMap((type) => resourcesOf(template, type))
      .map(([, { Properties }]) => (Properties.PolicyDocument as PolicyDocument).Statement)
      .filter((statements) => statements.some((statement) => calls(statement, 'dynamodb:')));
    expect(policies.length).toBeGreaterThan(functionNames.length);
    const statements = policies.flat().filter((statement) => calls(statement, 'kms:'));
    expect(statements).toHaveLength(policies.length);
    for (const { Resource, Condition } of statements) {
      const { 'kms:ViaService': service, ...others } = (Condition as Record<string, object>)[
        'StringEquals'
      ] as {
        'kms:ViaService': unknown;
      };
      expect([Resource, others]).toEqual([keyArn, {}]);
      expect(readable(service)).toMatch(/^dynamodb\.eu-central-1\./);
    }
  });

  test('hostedZone leads the domain to the distribution', () => {
    const { template } = synthesize({
      domain: 'llm.example.com',
      certificateArn,
      hostedZone: { id: 'Z0123456789', name: 'example.com' },
    });
    const records = resourcesOf(template, 'AWS::Route53::RecordSet').map(([, { Properties }]) => Properties);
    expect(records.map(({ Type }) => Type)).toEqual(['A', 'AAAA']);
    for (const record of records)
      expect(record).toMatchObject({ Name: 'llm.example.com.', HostedZoneId: 'Z0123456789' });
  });

  test('budget reports the costs of the account to its address, else to that of alarms', () => {
    const budgetOf = (options: Record<string, unknown>) =>
      one(synthesize(options).template, 'AWS::Budgets::Budget') as {
        Budget: unknown;
        NotificationsWithSubscribers: { Notification: unknown; Subscribers: unknown }[];
      };
    const own = budgetOf({ budget: { monthlyUsd: 300, email: 'money@example.com', topicArn } });
    expect(own.Budget).toMatchObject({
      BudgetType: 'COST',
      TimeUnit: 'MONTHLY',
      BudgetLimit: { Amount: 300, Unit: 'USD' },
    });
    expect(own.NotificationsWithSubscribers.map(({ Notification }) => Notification)).toMatchObject([
      { NotificationType: 'ACTUAL', Threshold: 80 },
      { NotificationType: 'ACTUAL', Threshold: 100 },
      { NotificationType: 'FORECASTED', Threshold: 100 },
    ]);
    expect(own.NotificationsWithSubscribers[0]?.Subscribers).toEqual([
      { SubscriptionType: 'EMAIL', Address: 'money@example.com' },
      { SubscriptionType: 'SNS', Address: topicArn },
    ]);
    const shared = budgetOf({ budget: { monthlyUsd: 300 }, alarmEmail: 'ops@example.com' });
    expect(shared.NotificationsWithSubscribers[0]?.Subscribers).toEqual([
      { SubscriptionType: 'EMAIL', Address: 'ops@example.com' },
    ]);
  });

  test('region is that of the stack, whatever the environment says', () => {
    const { template } = synthesize({ region: 'eu-central-1' });
    const tables = resourcesOf(template, 'AWS::DynamoDB::GlobalTable').map(
      ([, { Properties }]) => Properties,
    );
    for (const { Replicas } of tables) expect(Replicas).toMatchObject([{ Region: 'eu-central-1' }]);
  });
});

test.each(Object.entries(optionSets))(
  'one machine runs the template of a stage with %s',
  (_name, options) => {
    const { Resources } = synthesize(options).template;
    expect(() => checkResources(Resources)).not.toThrow();
  },
);
