/** What each rule of a service refuses: the change of the relay's own template, and words of the reason. */
import type { Account } from './loopback/account.ts';
import { withoutConditions } from './loopback/conditions.ts';
import { resolveTemplate } from './loopback/resolve-template.ts';
import { listOf } from './loopback/rules/rule.ts';
import type { CloudFormationStacks } from './loopback/stacks.ts';
import type { DeployedTemplate, TemplateResource } from './loopback/template.ts';

export interface RuleRow {
  rule: string;
  what: string;
  says: string;
  region?: string;
  importExisting?: boolean;
  /** What is there before the first deployment. */
  account?: (account: Account, stacks: CloudFormationStacks, template: DeployedTemplate) => void;
  /** An earlier deployment of the template with this change. Absent: the stack is new. */
  earlier?: (template: DeployedTemplate) => void;
  change: (template: DeployedTemplate) => void;
}

type Properties = Record<string, unknown>;

/** Sets what stands at a path such as `Replicas.0.Region`. */
function set(target: unknown, path: string, value: unknown): void {
  const keys = path.split('.');
  const last = keys.pop() ?? '';
  const holder = keys.reduce((inner, key) => (inner as Properties)[key], target) as Properties;
  holder[last] = value;
}

const firstKey = ({ KeySchema }: Properties): string =>
  (KeySchema as { AttributeName: string }[])[0]?.AttributeName ?? '';

export function find(template: DeployedTemplate, type: string, part = ''): [string, TemplateResource] {
  const found = Object.entries(template.Resources).find(
    ([id, resource]) =>
      resource.Type === `AWS::${type}` && (id.includes(part) || JSON.stringify(resource).includes(part)),
  );
  if (found === undefined) throw new Error(`no ${type} ${part}`);
  return found;
}

/** Properties of the first resource of a type, to be changed. */
export function propertiesOf(template: DeployedTemplate, type: string, part = ''): Properties {
  const [, resource] = find(template, type, part);
  return (resource.Properties ??= {});
}

export function add(
  template: DeployedTemplate,
  id: string,
  type: string,
  rest: Partial<TemplateResource>,
): void {
  template.Resources[id] = { Type: `AWS::${type}`, ...rest };
}

const table = 'DynamoDB::GlobalTable';
const lambda = 'Lambda::Function';
const distribution = 'CloudFront::Distribution';
const nothing = (): void => undefined;

/** The resources of a deployment that failed or was removed: they are there, and nobody's. */
function leftBehind(account: Account, template: DeployedTemplate, type: string): void {
  const place = { account: account.id, region: 'us-east-1', stack: 'relay', stackId: 'gone' };
  const context = { parameters: new Map(), region: place.region, stackOutput: () => undefined };
  const plain = withoutConditions(template, context);
  for (const resource of resolveTemplate(plain, place).resources.values())
    if (resource.type === `AWS::${type}`) account.put(resource, undefined);
}

const distributionOf = (template: DeployedTemplate): Properties =>
  propertiesOf(template, distribution)['DistributionConfig'] as Properties;

const documentOf = (bytes: number): Properties => ({
  Version: '2012-10-17',
  Statement: [
    {
      Effect: 'Allow',
      Action: 'sns:Publish',
      Resource: `arn:aws:sns:us-east-1:000000000000:${'x'.repeat(bytes)}`,
    },
  ],
});

const roleOf = (template: DeployedTemplate): Record<string, string> => ({
  Ref: find(template, 'IAM::Role', 'chat')[0],
});

/** Ids of the function `chat`, its alias and what belongs to the alias. */
function liveOf(template: DeployedTemplate): Record<'chat' | 'alias' | 'version' | 'url', string> {
  const idOf = (type: string, part: string): string => {
    const found = Object.entries(template.Resources).find(
      ([id, { Type }]) => Type === `AWS::${type}` && id.startsWith(part),
    );
    if (found === undefined) throw new Error(`no ${type} ${part}`);
    return found[0];
  };
  return {
    chat: idOf(lambda, 'FunctionschatFunction'),
    alias: idOf('Lambda::Alias', 'FunctionschatLive'),
    version: idOf('Lambda::Version', 'FunctionschatFunction'),
    url: idOf('Lambda::Url', 'FunctionschatLive'),
  };
}

/** As CDK makes one: other code under the function's id, and another id of the version. */
export function newBuild(template: DeployedTemplate): void {
  const { version } = liveOf(template);
  propertiesOf(template, lambda, 'Functionschat')['MemorySize'] = 1_024;
  template.Resources = JSON.parse(
    JSON.stringify(template.Resources).replaceAll(`"${version}"`, '"FunctionschatFunctionNextVersion"'),
  ) as DeployedTemplate['Resources'];
}

/** A deployment of a new build that ends where it began. */
export function rolledBack(stacks: CloudFormationStacks, template: DeployedTemplate): void {
  stacks.execute(stacks.plan('relay', template));
  const next = structuredClone(template);
  newBuild(next);
  const { alias } = liveOf(next);
  stacks.broken.set(alias, 'the alarm of the new version is triggered');
  stacks.execute(stacks.plan('relay', next));
  stacks.broken.delete(alias);
}

function withRetained(template: DeployedTemplate): DeployedTemplate {
  for (const resource of Object.values(template.Resources))
    if (resource.Type === 'AWS::Lambda::Version') resource.DeletionPolicy = 'Retain';
  return template;
}

function withGroup(template: DeployedTemplate, alarms = 1, platform = 'Lambda'): void {
  const names = Object.entries(template.Resources)
    .filter(([, { Type }]) => Type === 'AWS::CloudWatch::Alarm')
    .slice(0, alarms);
  propertiesOf(template, 'CodeDeploy::Application')['ComputePlatform'] = platform;
  set(
    propertiesOf(template, 'CodeDeploy::DeploymentGroup'),
    'AlarmConfiguration.Alarms',
    names.map(([id]) => ({ Name: { Ref: id } })),
  );
}

/** An alarm on a metric, not on an expression. */
function alarmOfOneMetric(template: DeployedTemplate): Properties {
  const found = Object.values(template.Resources).find(
    ({ Type, Properties }) => Type === 'AWS::CloudWatch::Alarm' && Properties?.['Namespace'] !== undefined,
  );
  if (found?.Properties === undefined) throw new Error('no alarm of one metric');
  return found.Properties;
}

const permission = (template: DeployedTemplate, action: string): string =>
  Object.entries(template.Resources).find(
    ([, { Type, Properties }]) =>
      Type === 'AWS::Lambda::Permission' &&
      Properties?.['Action'] === action &&
      Properties['Principal'] === '*',
  )?.[0] ?? '';

export const ruleRows: RuleRow[] = [
  {
    rule: 'table-name',
    what: 'a table name of 256 characters',
    says: 'AWS::DynamoDB::GlobalTable cannot be named xxx',
    change: (template) => {
      propertiesOf(template, table)['TableName'] = 'x'.repeat(256);
    },
  },
  {
    rule: 'dashboard-name',
    what: 'a dashboard name with a blank',
    says: 'AWS::CloudWatch::Dashboard cannot be named my relay',
    change: (template) => {
      propertiesOf(template, 'CloudWatch::Dashboard')['DashboardName'] = 'my relay';
    },
  },
  {
    rule: 'managed-policy-name',
    what: 'a managed policy name of 129 characters',
    says: 'AWS::IAM::ManagedPolicy cannot be named xxx',
    change: (template) =>
      add(template, 'A', 'IAM::ManagedPolicy', {
        Properties: { ManagedPolicyName: 'x'.repeat(129), PolicyDocument: documentOf(1) },
      }),
  },
  {
    rule: 'name-taken',
    what: 'tables of a deployment that failed, without --import-existing-resources',
    says: "Resource of type 'AWS::DynamoDB::GlobalTable' with identifier 'relay-",
    account: (account, _stacks, template) => leftBehind(account, template, table),
    change: nothing,
  },
  {
    rule: 'name-taken',
    what: 'a log group that is there',
    says: "'/aws/lambda/relay-chat' already exists",
    account: (account, _stacks, template) => {
      const copy = structuredClone(template);
      propertiesOf(copy, 'Logs::LogGroup')['LogGroupName'] = '/aws/lambda/relay-chat';
      leftBehind(account, copy, 'Logs::LogGroup');
    },
    change: (template) => {
      propertiesOf(template, 'Logs::LogGroup')['LogGroupName'] = '/aws/lambda/relay-chat';
    },
  },
  {
    rule: 'name-taken',
    what: 'a dashboard whose name another region of the account has',
    says: "AWS::CloudWatch::Dashboard' with identifier 'one-for-all'",
    region: 'eu-central-1',
    account: (_account, stacks, template) => {
      const copy = structuredClone(template);
      propertiesOf(copy, 'CloudWatch::Dashboard')['DashboardName'] = 'one-for-all';
      set(distributionOf(copy), 'Aliases', []);
      stacks.execute(stacks.plan('relay', copy));
    },
    change: (template) => {
      propertiesOf(template, 'CloudWatch::Dashboard')['DashboardName'] = 'one-for-all';
    },
  },
  {
    rule: 'name-taken',
    what: 'a table under another logical id, as after a move of its construct',
    says: "Resource of type 'AWS::DynamoDB::GlobalTable' with identifier 'relay-",
    earlier: nothing,
    change: (template) => {
      const [id, resource] = find(template, table);
      delete template.Resources[id];
      template.Resources = JSON.parse(
        JSON.stringify({ ...template.Resources, Moved: resource }).replaceAll(`"${id}"`, '"Moved"'),
      ) as DeployedTemplate['Resources'];
    },
  },
  {
    rule: 'name-twice',
    what: 'two alarms of one name',
    says: 'Same already exists in stack',
    change: (template) => {
      for (const [, resource] of Object.entries(template.Resources)
        .filter(([, { Type }]) => Type === 'AWS::CloudWatch::Alarm')
        .slice(0, 2))
        resource.Properties = { ...resource.Properties, AlarmName: 'Same' };
    },
  },
  {
    rule: 'import-retained',
    what: 'the import of tables that the stack would delete',
    says: 'its DeletionPolicy is not Retain',
    importExisting: true,
    account: (account, _stacks, template) => leftBehind(account, template, table),
    change: (template) => {
      for (const resource of Object.values(template.Resources))
        if (resource.Type === `AWS::${table}`) resource.DeletionPolicy = 'Delete';
    },
  },
  {
    rule: 'import-key-schema',
    what: 'the import of a table with other keys',
    says: 'is imported with other keys than it has',
    importExisting: true,
    account: (account, _stacks, template) => {
      const copy = structuredClone(template);
      set(propertiesOf(copy, table), 'KeySchema.0.AttributeName', 'old');
      leftBehind(account, copy, table);
    },
    change: nothing,
  },
  {
    rule: 'import-stream',
    what: 'the import of a restored table whose stream is not on yet',
    says: 'with stream off, not NEW_AND_OLD_IMAGES',
    importExisting: true,
    account: (account, _stacks, template) => {
      const copy = structuredClone(template);
      delete propertiesOf(copy, table)['StreamSpecification'];
      leftBehind(account, copy, table);
    },
    change: nothing,
  },
  {
    rule: 'custom-name-replaced',
    what: 'other keys of a table, which would replace it with its data',
    says: 'cannot update a stack when a custom-named resource requires replacing. Rename relay-',
    earlier: nothing,
    change: (template) => {
      const properties = propertiesOf(template, table);
      const old = firstKey(properties);
      Object.assign(
        properties,
        JSON.parse(
          JSON.stringify(properties).replaceAll(`"AttributeName":"${old}"`, '"AttributeName":"other"'),
        ),
      );
    },
  },
  {
    rule: 'table-keys-declared',
    what: 'a table that declares an attribute no key has',
    says: 'AttributeDefinitions differ: extra',
    change: (template) => {
      const properties = propertiesOf(template, table);
      const extra = { AttributeName: 'extra', AttributeType: 'S' };
      set(properties, 'AttributeDefinitions', [properties['AttributeDefinitions'], extra].flat());
    },
  },
  {
    rule: 'table-one-index-at-once',
    what: 'two new indexes in one deployment',
    says: 'more than one GSI creation or deletion in a single update (one, two)',
    earlier: nothing,
    change: (template) => {
      const properties = propertiesOf(template, table);
      const index = (name: string) => ({
        IndexName: name,
        KeySchema: [{ AttributeName: firstKey(properties), KeyType: 'HASH' }],
        Projection: { ProjectionType: 'KEYS_ONLY' },
      });
      properties['GlobalSecondaryIndexes'] = [
        ...listOf(properties['GlobalSecondaryIndexes']),
        index('one'),
        index('two'),
      ];
    },
  },
  {
    rule: 'table-replica-here',
    what: 'a table without a replica in its own region',
    says: 'Replicas must have the region of the stack, us-east-1: eu-west-1',
    change: (template) => {
      set(propertiesOf(template, table), 'Replicas.0.Region', 'eu-west-1');
    },
  },
  {
    rule: 'role-inline-size',
    what: 'a role whose inline policies have more than 10,240 characters together',
    says: 'Maximum policy size of 10240 bytes exceeded',
    change: (template) => {
      const Roles = [roleOf(template)];
      for (const name of ['A', 'B'])
        add(template, name, 'IAM::Policy', {
          Properties: { PolicyName: name, Roles, PolicyDocument: documentOf(5_000) },
        });
    },
  },
  {
    rule: 'managed-policy-size',
    what: 'a managed policy of more than 6,144 characters',
    says: 'Cannot exceed quota for PolicySize: 6144',
    change: (template) =>
      add(template, 'A', 'IAM::ManagedPolicy', { Properties: { PolicyDocument: documentOf(6_100) } }),
  },
  {
    rule: 'role-trust-size',
    what: 'a trust policy of more than 2,048 characters',
    says: 'ACLSizePerRole: 2048',
    change: (template) => {
      const condition = { StringEquals: { 'aws:SourceArn': 'x'.repeat(2_000) } };
      set(propertiesOf(template, 'IAM::Role'), 'AssumeRolePolicyDocument.Statement.0.Condition', condition);
    },
  },
  {
    rule: 'role-attached',
    what: 'more than ten managed policies of a role',
    says: 'PoliciesPerRole: 10 (11)',
    change: (template) => {
      propertiesOf(template, 'IAM::Role')['ManagedPolicyArns'] = Array.from(
        { length: 11 },
        (_, index) => `arn:aws:iam::aws:policy/Policy${index}`,
      );
    },
  },
  {
    rule: 'reserved-concurrency',
    what: 'reservations that leave others less than 100',
    says: 'below its minimum value of [100]',
    change: (template) => {
      for (const { Type, Properties } of Object.values(template.Resources))
        if (Type === `AWS::${lambda}` && Properties?.['ReservedConcurrentExecutions'] !== undefined)
          Properties['ReservedConcurrentExecutions'] = 451;
    },
  },
  {
    rule: 'reserved-concurrency',
    what: 'any reservation in a new account',
    says: 'below its minimum value of [10]',
    account: (account) => {
      account.concurrentExecutions = 10;
    },
    change: nothing,
  },
  {
    rule: 'environment-size',
    what: 'variables of more than 4 KB, values of secrets included',
    says: 'exceeded the 4KB limit',
    change: (template) => {
      set(propertiesOf(template, lambda), 'Environment.Variables.MORE', 'x'.repeat(4_000));
    },
  },
  {
    rule: 'environment-reserved',
    what: 'a variable that Lambda sets',
    says: 'Reserved keys used in this request: AWS_REGION',
    change: (template) => {
      set(propertiesOf(template, lambda), 'Environment.Variables.AWS_REGION', 'us-east-1');
    },
  },
  {
    rule: 'system-log-level',
    what: 'log levels of a function that logs text',
    says: 'need the log format JSON',
    change: (template) => {
      Object.assign(propertiesOf(template, lambda)['LoggingConfig'] as object, {
        LogFormat: 'Text',
        SystemLogLevel: 'WARN',
      });
    },
  },
  {
    rule: 'url-alias-exists',
    what: 'the URL of an alias that is not there',
    says: 'Function not found',
    change: (template) => {
      const { url } = liveOf(template);
      set(template.Resources, `${url}.Properties.Qualifier`, 'other');
    },
  },
  {
    rule: 'url-alias-exists',
    what: 'the URL of an alias that it does not wait for',
    says: 'the URL does not wait for the alias',
    change: (template) => {
      const { alias, url } = liveOf(template);
      const waits = [template.Resources[url]?.DependsOn ?? []].flat();
      set(
        template.Resources,
        `${url}.DependsOn`,
        waits.filter((id) => id !== alias),
      );
    },
  },
  {
    rule: 'url-permissions',
    what: 'the URL of an alias with the permissions of the function',
    says: 'every request is answered 403: no permission lambda:InvokeFunctionUrl and lambda:InvokeFunction',
    change: (template) => {
      const { chat, alias } = liveOf(template);
      for (const { Type, Properties } of Object.values(template.Resources))
        if (
          Type === 'AWS::Lambda::Permission' &&
          JSON.stringify(Properties?.['FunctionName']).includes(alias)
        )
          Object.assign(Properties ?? {}, { FunctionName: { Ref: chat } });
    },
  },
  ...['lambda:InvokeFunctionUrl', 'lambda:InvokeFunction'].map((action): RuleRow => ({
    rule: 'url-permissions',
    what: `a public URL without ${action}`,
    says: `no permission ${action} for everybody`,
    change: (template) => {
      delete template.Resources[permission(template, action)];
    },
  })),
  {
    rule: 'url-streams-outside-vpc',
    what: 'a streaming URL of a function in a VPC',
    says: 'does not stream from a function in a VPC',
    change: (template) => {
      propertiesOf(template, lambda, 'Functionschat')['VpcConfig'] = {
        SubnetIds: ['subnet-12345678'],
        SecurityGroupIds: ['sg-12345678'],
      };
    },
  },
  {
    rule: 'version-of-new-code',
    what: 'a second version of the same code',
    says: 'A version for this Lambda function exists',
    earlier: nothing,
    change: (template) => {
      const { version } = liveOf(template);
      template.Resources = JSON.parse(
        JSON.stringify(template.Resources).replaceAll(`"${version}"`, '"Version2"'),
      ) as DeployedTemplate['Resources'];
    },
  },
  {
    rule: 'version-of-new-code',
    what: 'a build that was rolled back, again, where its version was retained',
    says: 'A version for this Lambda function exists',
    account: (_account, stacks, template) => rolledBack(stacks, withRetained(structuredClone(template))),
    earlier: withRetained,
    change: newBuild,
  },
  {
    rule: 'version-is-new',
    what: 'new code without a new version for the alias',
    says: 'its alias goes on with the old code',
    earlier: nothing,
    change: (template) => {
      propertiesOf(template, lambda, 'Functionschat')['MemorySize'] = 1_024;
    },
  },
  {
    rule: 'stream-readers',
    what: 'a third reader of one table stream',
    says: 'more than 2 readers',
    change: (template) => {
      const [, mapping] = find(template, 'Lambda::EventSourceMapping');
      for (const id of ['SecondReader', 'ThirdReader']) template.Resources[id] = structuredClone(mapping);
    },
  },
  {
    rule: 'stream-filters',
    what: 'more than five filters',
    says: '6 filters, at most 5',
    change: (template) => {
      propertiesOf(template, 'Lambda::EventSourceMapping')['FilterCriteria'] = {
        Filters: Array.from({ length: 6 }, (_, index) => ({ Pattern: `{"eventName":["${index}"]}` })),
      };
    },
  },
  {
    rule: 'stream-role-first',
    what: 'a table stream that the role of its function may not read',
    says: 'the role can perform dynamodb:GetRecords before the mapping is made',
    change: (template) => {
      for (const { Type, Properties } of Object.values(template.Resources))
        if (Type === 'AWS::IAM::Policy')
          Object.assign(
            Properties ?? {},
            JSON.parse(JSON.stringify(Properties).replaceAll('dynamodb:GetRecords', 'dynamodb:Scan')),
          );
    },
  },
  {
    rule: 'stream-role-first',
    what: 'a bucket of failures that the role may not write to',
    says: 'the role can perform s3:PutObject before the mapping is made',
    change: (template) => {
      for (const { Type, Properties } of Object.values(template.Resources))
        if (Type === 'AWS::IAM::Policy')
          Object.assign(
            Properties ?? {},
            JSON.parse(JSON.stringify(Properties).replaceAll('s3:PutObject', 's3:GetObject')),
          );
    },
  },
  {
    rule: 'acl-region',
    what: 'a web ACL for CloudFront outside us-east-1',
    says: 'parameter: CLOUDFRONT (in eu-central-1',
    region: 'eu-central-1',
    change: (template) =>
      add(template, 'Acl', 'WAFv2::WebACL', {
        Properties: {
          Scope: 'CLOUDFRONT',
          DefaultAction: { Allow: {} },
          VisibilityConfig: {
            CloudWatchMetricsEnabled: true,
            MetricName: 'acl',
            SampledRequestsEnabled: false,
          },
        },
      }),
  },
  {
    rule: 'acl-scope',
    what: 'a regional web ACL before CloudFront',
    says: 'is no web ACL of scope CLOUDFRONT',
    change: (template) => {
      distributionOf(template)['WebACLId'] =
        'arn:aws:wafv2:us-east-1:000000000000:regional/webacl/acl/0a1b2c3d';
    },
  },
  {
    rule: 'certificate-region',
    what: 'a certificate of another region',
    says: "isn't in us-east-1 region",
    change: (template) => {
      set(
        distributionOf(template),
        'ViewerCertificate.AcmCertificateArn',
        'arn:aws:acm:eu-central-1:123456789012:certificate/12345678-1234-1234-1234-123456789012',
      );
    },
  },
  {
    rule: 'alias-certificate',
    what: 'a host name without a certificate',
    says: 'you must attach a trusted certificate',
    change: (template) => {
      distributionOf(template)['ViewerCertificate'] = { CloudFrontDefaultCertificate: true };
    },
  },
  {
    rule: 'alias-taken',
    what: 'a host name that another distribution has',
    says: 'CNAMEAlreadyExists',
    account: (account, _stacks, template) => leftBehind(account, template, distribution),
    change: nothing,
  },
  {
    rule: 'origin-timeout',
    what: 'a read time-out over 120 seconds',
    says: '180 s; 1 to 120',
    change: (template) => {
      set(distributionOf(template), 'Origins.0.CustomOriginConfig.OriginReadTimeout', 180);
    },
  },
  {
    rule: 'origin-headers',
    what: 'a header to origins that CloudFront sets itself',
    says: 'the custom header X-Amz-Relay is one that CloudFront does not add',
    change: (template) => {
      set(distributionOf(template), 'Origins.0.OriginCustomHeaders.0.HeaderName', 'X-Amz-Relay');
    },
  },
  {
    rule: 'metric-region',
    what: 'an alarm of CloudFront outside us-east-1',
    says: 'in eu-central-1 the alarm never has data',
    region: 'eu-central-1',
    change: (template) => {
      alarmOfOneMetric(template)['Namespace'] = 'AWS/CloudFront';
    },
  },
  {
    rule: 'alarm-window',
    what: 'an alarm over more than a day of five-minute periods',
    says: 'cannot be checked across more than a day',
    change: (template) => {
      Object.assign(alarmOfOneMetric(template), { EvaluationPeriods: 289, Period: 300 });
    },
  },
  {
    rule: 'alarm-action-region',
    what: 'an alarm that tells a topic of another region',
    says: 'Invalid region eu-west-1 specified. Only us-east-1 is supported',
    change: (template) => {
      propertiesOf(template, 'CloudWatch::Alarm')['AlarmActions'] = [
        'arn:aws:sns:eu-west-1:000000000000:ops',
      ];
    },
  },
  {
    rule: 'composite-children',
    what: 'a composite alarm of an alarm that it does not wait for',
    says: 'is not an existing alarm when the rule is made',
    change: (template) => {
      propertiesOf(template, 'CloudWatch::Alarm')['AlarmName'] = 'one';
      add(template, 'Both', 'CloudWatch::CompositeAlarm', { Properties: { AlarmRule: 'ALARM("one")' } });
    },
  },
  {
    rule: 'dashboard-body',
    what: 'a dashboard of more than 500 widgets',
    says: '501 widgets, at most 500',
    change: (template) => {
      propertiesOf(template, 'CloudWatch::Dashboard')['DashboardBody'] = JSON.stringify({
        widgets: Array.from({ length: 501 }, () => ({ type: 'text', properties: { markdown: '' } })),
      });
    },
  },
  {
    rule: 'budget-topic',
    what: 'a budget that its topic does not let publish',
    says: 'does not name budgets.amazonaws.com',
    change: (template) => {
      add(template, 'Bills', 'SNS::Topic', { Properties: {} });
      add(template, 'Budget', 'Budgets::Budget', {
        Properties: {
          Budget: { BudgetType: 'COST', TimeUnit: 'MONTHLY', BudgetLimit: { Amount: 100, Unit: 'USD' } },
          NotificationsWithSubscribers: [
            {
              Notification: { ComparisonOperator: 'GREATER_THAN', NotificationType: 'ACTUAL', Threshold: 80 },
              Subscribers: [{ SubscriptionType: 'SNS', Address: { Ref: 'Bills' } }],
            },
          ],
        },
      });
    },
  },
  {
    rule: 'shift-group',
    what: 'traffic shifting by a group of another platform',
    says: 'no deployment group',
    change: (template) => withGroup(template, 1, 'Server'),
  },
  {
    rule: 'shift-alarms',
    what: 'a deployment group with more than ten alarms',
    says: '11 alarms, at most 10',
    change: (template) => withGroup(template, 11),
  },
];
