/** The double of CloudFormation refuses what AWS refuses: the relay's own template with one thing changed, for each rule. */
import { beforeAll, describe, expect, it } from 'vitest';
import { Account } from './loopback/account.ts';
import { serviceRules } from './loopback/rules/service-rules.ts';
import { ResourceSchemas } from './loopback/schemas.ts';
import { CloudFormationStacks, type LoopbackStack } from './loopback/stacks.ts';
import type { DeployedTemplate, TemplateResource } from './loopback/template.ts';
import { ruleRows, type RuleRow } from './rule-rows.ts';
import { schemaRows } from './schema-rows.ts';
import { synthesize } from './synthesize.ts';

const options = {
  alarmEmail: 'ops@example.com',
  domain: 'api.example.com',
  certificateArn: 'arn:aws:acm:us-east-1:123456789012:certificate/12345678-1234-1234-1234-123456789012',
  originSecrets: [1, 2],
  sealKeys: [1, 2],
  reservedConcurrency: 200,
};

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

describe('CloudFormation’s double', () => {
  it.each([
    ['all options', options, 'us-east-1'],
    ['all options elsewhere', options, 'eu-central-1'],
    ['a disposable stage', { stage: 'try', disposable: true }, 'us-east-1'],
  ])('takes the relay’s own template with %s', (_what, context, region) => {
    const { account, stacks } = emptied();
    const stack = deploy(stacks, synthesize(context).template, { region });
    expect(stack.failure).toBeUndefined();
    expect(stack.status).toBe('CREATE_COMPLETE');
    expect(account.ownedBy(stack.id)).toHaveLength(Object.keys(stack.template?.Resources ?? {}).length);
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

  it.each(schemaRows)('refuses, by CloudFormation’s schema, $what', ({ change, says }) => {
    const stack = deploy(emptied().stacks, changed(change));
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
    expect(account.ownedBy(stack.id)).toEqual([]);
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
    const byId = (list: typeof before) => list.map(({ id, properties }) => [id, properties]).toSorted();
    expect(byId(account.standing)).toEqual(byId(before));
  });
});
