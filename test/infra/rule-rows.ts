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

export const ruleRows: RuleRow[] = [
  {
    rule: 'name-taken',
    what: 'tables of a deployment that failed, without --import-existing-resources',
    says: "Resource of type 'AWS::DynamoDB::GlobalTable' with identifier 'relay-",
    account: (account, _stacks, template) => leftBehind(account, template, table),
    change: nothing,
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
    rule: 'environment-size',
    what: 'variables of more than 4 KB, values of secrets included',
    says: 'exceeded the 4KB limit',
    change: (template) => {
      set(propertiesOf(template, lambda), 'Environment.Variables.MORE', 'x'.repeat(4_000));
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
    rule: 'alias-taken',
    what: 'a host name that another distribution has',
    says: 'CNAMEAlreadyExists',
    account: (account, _stacks, template) => leftBehind(account, template, distribution),
    change: nothing,
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
