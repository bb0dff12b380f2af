/** The double of CloudFormation with the rules of the services, applied to the relay's own templates. */
import { beforeAll, describe, expect, it } from 'vitest';
import { Account } from './loopback/account.ts';
import { CloudFormationStacks, type LoopbackStack } from './loopback/stacks.ts';
import {
  textOf,
  waitsFor,
  type DeployedTemplate,
  type Resource,
  type TemplateResource,
} from './loopback/template.ts';
import { optionSets } from './option-sets.ts';
import { synthesize } from './synthesize.ts';

const { stage: _stage, ...named } = optionSets['a domain and a mail address'] ?? {};
/** The options of the template that the cases change. */
const options = { ...named, reservedConcurrency: 200 };

let whole: DeployedTemplate;

beforeAll(() => {
  whole = synthesize(options).template;
});

const emptied = () => {
  const account = new Account();
  return { account, stacks: new CloudFormationStacks(account) };
};

function deploy(stacks: CloudFormationStacks, template: DeployedTemplate): LoopbackStack {
  const stack = stacks.plan('relay', template, { region: 'us-east-1' });
  stacks.execute(stack);
  return stack;
}

/** The region that an option set names, or the region of its topic. */
const regionOf = ({ region, alarmTopicArn }: Record<string, unknown>): string =>
  textOf(region ?? (alarmTopicArn === undefined ? 'us-east-1' : textOf(alarmTopicArn).split(':')[3]));

describe('CloudFormation’s double', () => {
  it.each(Object.entries(optionSets))('accepts the relay’s own templates: %s', (_what, given) => {
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

  it('keeps only the tables of a failed first deployment', () => {
    const { account, stacks } = emptied();
    const [dashboard = ''] =
      Object.entries(whole.Resources).find(([, { Type }]) => Type === 'AWS::CloudWatch::Dashboard') ?? [];
    stacks.broken = (id) => (id === dashboard ? 'InternalFailure' : undefined);
    const stack = deploy(stacks, whole);
    expect(stack.status).toBe('ROLLBACK_COMPLETE');
    const kept = account.standing.filter(({ owner }) => owner === undefined);
    const retained = (resource: TemplateResource) => resource.DeletionPolicy === 'Retain';
    expect(kept.length).toBeGreaterThan(11);
    expect(kept.every(({ id }) => retained(whole.Resources[id] ?? { Type: '' }))).toBe(true);
    expect(kept.filter(({ type }) => type === 'AWS::Logs::LogGroup')).toEqual([]);
    expect(account.ownedBy(stack.id)).toEqual([]);
  });

  it('rejects servers in a zone that CloudFront can’t reach; the first two zones of an account may include one', () => {
    const servers = (service: object) => synthesize({ compute: 'ecs', service }).template;
    const { stacks } = emptied();
    expect(deploy(stacks, servers({})).failure?.reason).toContain('the VPC origin is in use1-az3');
    const elsewhere = deploy(emptied().stacks, servers({ zones: ['use1-az1', 'use1-az6'] }));
    expect(elsewhere.status).toBe('CREATE_COMPLETE');
  });

  it('updates CloudFront with a new origin secret only after every function that must accept it', () => {
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
    expect(accepting).toHaveLength(6);
    const early = accepting.filter(({ id }) => !distribution || !waitsFor(resources, distribution, id));
    expect(early.map(({ id }) => id)).toEqual([]);
  });

  it('deletes a trial completely, even if its bucket of failures is not empty', () => {
    const { account, stacks } = emptied();
    const stack = deploy(stacks, synthesize({ disposable: true }).template);
    expect(stack).toMatchObject({ failure: undefined });
    const bucket = account.standing.find(({ type }) => type === 'AWS::S3::Bucket');
    account.filled.add(bucket?.physicalId ?? '');
    stacks.delete(stack);
    expect(stack.status).toBe('DELETE_COMPLETE');
    expect(account.standing).toEqual([]);
  });

  it('deletes other stacks except for their tables, bucket, logs and seal keys', () => {
    const { account, stacks } = emptied();
    stacks.delete(deploy(stacks, whole));
    expect(new Set(account.standing.map(({ type }) => type))).toEqual(
      new Set([
        'AWS::DynamoDB::GlobalTable',
        'AWS::S3::Bucket',
        'AWS::Logs::LogGroup',
        'AWS::SecretsManager::Secret',
      ]),
    );
    const secrets = account.standing.filter(({ type }) => type === 'AWS::SecretsManager::Secret');
    expect(secrets.every(({ id }) => id.startsWith('SealKeys'))).toBe(true);
  });
});
