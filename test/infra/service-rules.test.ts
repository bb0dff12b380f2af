/** The double of CloudFormation refuses what AWS refuses: the relay's own template with one thing changed, for each rule. */
import { beforeAll, describe, expect, it } from 'vitest';
import { Account } from './loopback/account.ts';
import { serviceRules } from './loopback/rules/stack-rules.ts';
import { ResourceSchemas } from './loopback/schemas.ts';
import { CloudFormationStacks, type LoopbackStack } from './loopback/stacks.ts';
import {
  textOf,
  waitsFor,
  type DeployedTemplate,
  type Resource,
  type TemplateResource,
} from './loopback/template.ts';
import { optionSets } from './option-sets.ts';
import { newBuild, propertiesOf, rolledBack, ruleRows, type RuleRow } from './rule-rows.ts';
import { synthesize } from './synthesize.ts';

const { stage: _stage, ...named } = optionSets['a domain and a mail address'] ?? {};
/** Of the template that the rows change. */
const options = { ...named, reservedConcurrency: 200 };

let schemas: ResourceSchemas;
let whole: DeployedTemplate;

beforeAll(() => {
  schemas = new ResourceSchemas();
  whole = synthesize(options).template;
});

const emptied = () => {
  const account = new Account();
  return { account, stacks: new CloudFormationStacks(account, schemas) };
};

function deploy(
  stacks: CloudFormationStacks,
  template: DeployedTemplate,
  row: Partial<RuleRow> = {},
): LoopbackStack {
  const { region = 'us-east-1', importExisting = false } = row;
  const stack = stacks.plan('relay', template, { region, importExisting });
  stacks.execute(stack);
  return stack;
}

const changed = (change: (template: DeployedTemplate) => void, from = whole): DeployedTemplate => {
  const copy = structuredClone(from);
  change(copy);
  return copy;
};

/** Where a set says that it is, or where the topic is that it names. */
const regionOf = ({ region, alarmTopicArn }: Record<string, unknown>): string =>
  textOf(region ?? (alarmTopicArn === undefined ? 'us-east-1' : textOf(alarmTopicArn).split(':')[3]));

describe('CloudFormation’s double', () => {
  it.each(Object.entries(optionSets))('takes the relay’s own templates: %s', (_what, given) => {
    const { account, stacks } = emptied();
    const { stackName, template, edge } = synthesize(given);
    const isOfAlarms = (name: string) => name.includes('alarms');
    const before = Object.entries(edge).filter(([name]) => !isOfAlarms(name));
    const after = Object.entries(edge).filter(([name]) => isOfAlarms(name));
    const inOrder = [...before, [stackName, template] as const, ...after];
    for (const [name, each] of inOrder) {
      const region = name === stackName ? regionOf(given) : 'us-east-1';
      const stack = stacks.plan(name, each, { region });
      stacks.execute(stack);
      expect(stack.failure).toBeUndefined();
      expect(stack.status).toBe('CREATE_COMPLETE');
      expect(account.ownedBy(stack.id)).toHaveLength(Object.keys(each.Resources).length);
    }
  });

  it.each(ruleRows)('refuses, by rule $rule, $what', (row) => {
    const { account, stacks } = emptied();
    row.account?.(account, stacks, whole);
    if (row.earlier) expect(deploy(stacks, changed(row.earlier), row)).toMatchObject({ failure: undefined });
    const stack = deploy(stacks, changed(row.change, row.earlier && changed(row.earlier)), row);
    expect(stack.failure).toMatchObject({
      rule: row.rule,
      reason: expect.stringContaining(row.says) as string,
    });
    expect(stack.status).toBe(row.earlier ? 'UPDATE_ROLLBACK_COMPLETE' : 'ROLLBACK_COMPLETE');
  });

  it.each([
    ['a role name of 65 characters', 'IAM::Role', 'RoleName', 'x'.repeat(65), '#/RoleName'],
    ['a misspelt property', 'Lambda::Function', 'MemorySiz', 256, "'MemorySiz' was unexpected"],
    ['an invoke mode that Lambda does not know', 'Lambda::Url', 'InvokeMode', 'STREAM', '#/InvokeMode'],
    ['a function without a role', 'Lambda::Function', 'Role', undefined, "'Role' is a required property"],
  ])('refuses, by CloudFormation’s schema, %s', (_what, type, property, value, says) => {
    const template = changed((copy) => {
      propertiesOf(copy, type)[property] = value;
    });
    const stack = deploy(emptied().stacks, template);
    expect(stack.failure).toMatchObject({ rule: 'schema', reason: expect.stringContaining(says) as string });
  });

  it('has a row that is refused, and a page of AWS that says so, for each of its rules', () => {
    expect(serviceRules.map(({ id }) => id).toSorted()).toEqual(
      [...new Set(ruleRows.map(({ rule }) => rule))].toSorted(),
    );
    for (const { source } of serviceRules)
      expect(source).toMatch(/^https:\/\/docs\.aws\.amazon\.com\/.+\.html/);
    expect(schemas.count).toBeGreaterThan(1_500);
  });

  it('takes a build again that was rolled back, and keeps no version of it', () => {
    const { account, stacks } = emptied();
    rolledBack(stacks, whole);
    const versions = () => account.standing.filter(({ type }) => type === 'AWS::Lambda::Version');
    const before = versions().map(({ id }) => id);
    expect(stacks.named('relay')?.status).toBe('UPDATE_ROLLBACK_COMPLETE');
    expect(deploy(stacks, changed(newBuild))).toMatchObject({ failure: undefined });
    // The version that lost its calls still ends answers.
    expect(versions().map(({ id }) => id)).toEqual(expect.arrayContaining(before));
    expect(versions()).toHaveLength(before.length + 1);
  });

  it('keeps the tables of a first deployment that failed, and nothing else', () => {
    const { account, stacks } = emptied();
    const [dashboard = ''] =
      Object.entries(whole.Resources).find(([, { Type }]) => Type === 'AWS::CloudWatch::Dashboard') ?? [];
    stacks.broken.set(dashboard, 'InternalFailure');
    const stack = deploy(stacks, whole);
    expect(stack.status).toBe('ROLLBACK_COMPLETE');
    const kept = account.standing.filter(({ owner }) => owner === undefined);
    const retained = (resource: TemplateResource) => resource.DeletionPolicy === 'Retain';
    expect(kept.length).toBeGreaterThan(11);
    expect(kept.every(({ id }) => retained(whole.Resources[id] ?? { Type: '' }))).toBe(true);
    expect(kept.filter(({ type }) => type === 'AWS::Logs::LogGroup')).toEqual([]);
    expect(account.ownedBy(stack.id)).toEqual([]);
  });

  it('gives CloudFront a new origin secret after every function that must accept it', () => {
    const { stacks } = emptied();
    const { changeSet } = stacks.plan('relay', whole);
    const resources = changeSet?.resolved.resources ?? new Map<string, Resource>();
    const all = [...resources.values()];
    const accepting = all.filter(
      ({ properties }) =>
        JSON.stringify(properties).includes('"ORIGIN_SECRETS":"') &&
        !JSON.stringify(properties).includes('"ORIGIN_SECRETS":""'),
    );
    const distribution = all.find(({ type }) => type === 'AWS::CloudFront::Distribution');
    expect(accepting).toHaveLength(4);
    const early = accepting.filter(({ id }) => !distribution || !waitsFor(resources, distribution, id));
    expect(early.map(({ id }) => id)).toEqual([]);
  });

  it('deletes a trial whose bucket of failures holds some, and leaves nothing of it', () => {
    const { account, stacks } = emptied();
    const stack = deploy(stacks, synthesize({ disposable: true }).template);
    expect(stack).toMatchObject({ failure: undefined });
    const bucket = account.standing.find(({ type }) => type === 'AWS::S3::Bucket');
    account.filled.add(bucket?.physicalId ?? '');
    stacks.delete(stack);
    expect(stack.status).toBe('DELETE_COMPLETE');
    expect(account.standing).toEqual([]);
  });

  it('deletes another stack but for its tables, bucket and logs', () => {
    const { account, stacks } = emptied();
    stacks.delete(deploy(stacks, whole));
    expect(new Set(account.standing.map(({ type }) => type))).toEqual(
      new Set(['AWS::DynamoDB::GlobalTable', 'AWS::S3::Bucket', 'AWS::Logs::LogGroup']),
    );
  });

  it('brings a failed update back to what stood before', () => {
    const { account, stacks } = emptied();
    deploy(stacks, whole);
    const before = structuredClone(account.standing);
    const [last = ''] =
      Object.entries(whole.Resources).findLast(([, { Type }]) => Type === 'AWS::Lambda::Function') ?? [];
    stacks.broken.set(last, 'InternalFailure');
    const template = changed(({ Resources }) => {
      for (const resource of Object.values(Resources))
        if (resource.Type === 'AWS::Lambda::Function')
          resource.Properties = { ...resource.Properties, MemorySize: 512 };
    });
    expect(deploy(stacks, template).status).toBe('UPDATE_ROLLBACK_COMPLETE');
    const byId = (list: typeof before) =>
      Object.fromEntries(list.map(({ id, properties }) => [id, properties]));
    expect(byId(account.standing)).toEqual(byId(before));
  });
});
