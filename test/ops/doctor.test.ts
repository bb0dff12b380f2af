import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startAccessRig, type AccessRig } from '../access/access-rig.ts';
import { policiesOf, region } from '../access/template-policies.ts';
import { synthesize } from '../infra/synthesize.ts';
import { healthyAccount, type AccountState, type ModelState } from './account-replies.ts';

interface Found {
  check: string;
  state: string;
  found: string;
  set?: { where: string; line: string };
}

const model = 'openai.gpt-oss-120b-1:0';
const allowed = `arn:aws:bedrock:us-east-1::foundation-model/${model}`;
const options = { reservedConcurrency: 100, bedrockModels: [allowed] };
const folder = mkdtempSync(join(tmpdir(), 'relay-doctor-'));
let rig: AccessRig;
let account: AccountState;
beforeAll(async () => {
  rig = await startAccessRig(policiesOf(synthesize({}).template));
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await rig.stop();
});

const roleChannel = { id: 'role', type: 'bedrock', region: 'us-east-1', models: [model], state: true };
const keyed = (secret: string) => ({
  id: 'keyed',
  endpoint: 'https://api.example.com/v1',
  models: ['m'],
  secret,
  state: true,
});

beforeEach(async () => {
  ({ account } = rig.aws);
  Object.assign(account, healthyAccount(), {
    models: { 'us-east-1': [{ id: model }] },
    stack: {
      status: 'UPDATE_COMPLETE',
      outputs: {
        OperatorPolicy: 'arn:aws:iam::123456789012:policy/relay-operator-eu-west-1',
        Options: JSON.stringify(options),
      },
    },
  });
  await rig.ledger.put('channels', roleChannel, keyed('ssm:/relay/relay/channels/api.example.com/keyed'));
});

function fileOf(content: unknown): string {
  const path = join(folder, 'relay.json');
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

async function examine(content: unknown = options): Promise<{ code: number; found: Found[] }> {
  const run = await rig.ops('support', ['doctor', '--json', '--options', fileOf(content)]);
  return { code: run.code, found: JSON.parse(run.output) as Found[] };
}

const attentionOf = ({ found }: { found: Found[] }): Found[] =>
  found.filter(({ state }) => state === 'attention');

describe('doctor', () => {
  it('reports each finding, and needs no attention in an account that has all that a relay needs', async () => {
    const run = await rig.ops('support', ['doctor', '--options', fileOf(options)]);
    expect(run).toMatchObject({ code: 0, errors: '' });
    for (const line of [
      'stack relay in eu-west-1',
      'ok              region: eu-west-1: answers stream there',
      'ok              stack: UPDATE_COMPLETE',
      `ok              options: ${join(folder, 'relay.json')} matches the deployed stack`,
      'the account allows 1000 concurrent executions in this region, 700 unreserved; 100 reserved for each of chat, responses, messages, at most 300 possible',
      'ok              tables: a table allows 40000 reads and 40000 writes a second',
      'ok              secrets: 1 of 1 secret in Parameter Store, which allows 10,000 reads a second here',
      `ok              model ${model}: channel role, us-east-1: available`,
      '7 checks: nothing needs attention.',
    ])
      expect(run.output).toContain(line);
  });

  it('reports that no active channel has a secret, and counts disabled and invalid channels', async () => {
    const secretsFound = async () => (await examine()).found.find(({ check }) => check === 'secrets')?.found;
    const row = keyed('ssm:/relay/relay/channels/api.example.com/keyed');
    for (const unused of [
      { ...row, state: false },
      { ...row, endpoint: 'http://127.0.0.1:1/v1' },
    ]) {
      await rig.ledger.put('channels', unused);
      expect(await secretsFound()).toBe(
        'no active channel has a secret; 1 channel is disabled or invalid: see `check`',
      );
    }
    await rig.ledger.remove('channels', { id: 'keyed' });
    expect(await secretsFound()).toBe('no active channel has a secret');
  });

  it('sends each service a request signed for the right service and region', async () => {
    await examine();
    expect(account.asked.toSorted()).toEqual([
      'bedrock us-east-1 GET /foundation-model-availability/openai.gpt-oss-120b-1%3A0',
      'bedrock us-east-1 GET /foundation-models',
      `cloudformation ${region} POST /`,
      `dynamodb ${region} POST / DynamoDB_20120810.DescribeLimits`,
      `lambda ${region} GET /2016-08-19/account-settings`,
      `ssm ${region} POST / AmazonSSM.GetServiceSetting`,
    ]);
  });

  it.each<[string, () => void, Partial<Found>, string | undefined]>([
    [
      'a stack that rolled back',
      () => Object.assign(account.stack ?? {}, { status: 'UPDATE_ROLLBACK_COMPLETE' }),
      {
        check: 'stack',
        found: 'UPDATE_ROLLBACK_COMPLETE: the last deployment failed; see its events',
      },
      undefined,
    ],
    [
      'a table quota below the default',
      () => Object.assign(account, { tableUnits: 10_000 }),
      { check: 'tables' },
      'aws service-quotas list-service-quotas --service-code dynamodb --region eu-west-1',
    ],
    [
      'secrets in a slow Parameter Store',
      () => Object.assign(account, { fastParameters: false }),
      { check: 'secrets' },
      'aws ssm update-service-setting --setting-id /ssm/parameter-store/high-throughput-enabled --setting-value true --region eu-west-1',
    ],
    [
      'more concurrency reserved than the account has',
      () => Object.assign(account, { concurrency: { most: 1000, unreserved: 50 } }),
      { check: 'concurrency' },
      '"reservedConcurrency": 83',
    ],
  ])('reports %s, and the command or option that fixes it', async (_case, change, finding, line) => {
    change();
    const examined = await examine();
    expect(examined.code).toBe(1);
    expect(attentionOf(examined)).toMatchObject([finding]);
    expect(attentionOf(examined)[0]?.set?.line).toBe(line);
  });

  it.each<[string, { most: number; unreserved: number }, string | undefined, string[]]>([
    ['room for a reservation', { most: 1000, unreserved: 1000 }, undefined, ['"reservedConcurrency": 300']],
    [
      'a new account',
      { most: 10, unreserved: 10 },
      undefined,
      [
        'aws service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384 --desired-value 1000 --region eu-west-1',
      ],
    ],
    ['an account whose concurrency is used up', { most: 1000, unreserved: 100 }, 'none can be reserved', []],
  ])(
    'without a reservation and with %s reports the possible reservation',
    async (_case, concurrency, words, lines) => {
      account.concurrency = concurrency;
      const bedrockModels = [allowed];
      Object.assign(account.stack?.outputs ?? {}, { Options: JSON.stringify({ bedrockModels }) });
      const examined = await examine({ bedrockModels });
      const found = attentionOf(examined).filter(({ check }) => check === 'concurrency');
      expect(found.flatMap(({ set }) => set?.line ?? [])).toEqual(lines);
      if (words !== undefined) expect(found.at(-1)?.found).toContain(words);
      expect(found.length).toBeGreaterThan(0);
    },
  );

  it('recommends no reservation with servers, which do not use one', async () => {
    const served = { compute: 'ecs', bedrockModels: [allowed] };
    Object.assign(account.stack?.outputs ?? {}, { Options: JSON.stringify(served) });
    expect(attentionOf(await examine(served))).toEqual([]);
  });

  it.each<[string, Partial<ModelState>, string]>([
    ['no agreement', { agreement: 'NOT_AVAILABLE' }, "the model vendor's agreement is not accepted"],
    ['a pending agreement', { agreement: 'PENDING' }, "the model vendor's agreement is not accepted"],
    ['no authorisation', { authorization: 'NOT_AUTHORIZED' }, 'this account is not authorized for the model'],
    ['no entitlement', { entitlement: 'NOT_AVAILABLE' }, 'this account has no entitlement to the model'],
    ['another region', { inRegion: 'NOT_AVAILABLE' }, 'the model is not available in this region'],
    ['an announced end of life', { lifecycle: 'LEGACY' }, 'AWS marks it as LEGACY and will remove it'],
    ['no stream', { streams: false }, 'it does not support streaming'],
  ])('reports a model of a channel with %s', async (_case, changes, words) => {
    account.models = { 'us-east-1': [{ id: model, ...changes }] };
    expect(attentionOf(await examine())).toMatchObject([
      { check: `model ${model}`, found: `channel role, us-east-1: ${words}` },
    ]);
  });

  it('reports models that AWS does not list, and models that the role may not call, with the option that allows them', async () => {
    const profile = 'us.vendor.big-1';
    await rig.ledger.put('channels', {
      ...roleChannel,
      models: [model, 'gone.model', 'big'],
      mapper: { big: profile },
    });
    account.models = { 'us-east-1': [{ id: model }, { id: 'vendor.big-1' }] };
    Object.assign(account.stack?.outputs ?? {}, { Options: '{"reservedConcurrency":100}' });
    const found = attentionOf(await examine({ reservedConcurrency: 100 }));
    expect(found.find(({ check }) => check === 'model gone.model')?.found).toContain(
      'AWS does not offer this model there; correct models or mapper of the channel',
    );
    expect(found.find(({ check }) => check === `model ${model}`)?.set).toEqual({
      where: join(folder, 'relay.json'),
      line: `"bedrockModels": ["${allowed}"]`,
    });
    expect(found.find(({ check }) => check === `model ${profile}`)?.set?.line).toBe(
      `"bedrockModels": [{"profile":"arn:aws:bedrock:us-east-1:123456789012:inference-profile/${profile}","regions":["us-east-1"]}]`,
    );
  });

  it.each<[string, unknown, Partial<Found>[], string[]]>([
    [
      'has another value',
      { ...options, reservedConcurrency: 200 },
      [{ check: 'options', found: expect.stringContaining('but 100 is deployed') }],
      ['npm run deploy'],
    ],
    [
      'lacks an option',
      { bedrockModels: [allowed] },
      [
        {
          check: 'options',
          found: expect.stringContaining('reservedConcurrency is deployed'),
        },
      ],
      ['"reservedConcurrency": 100'],
    ],
    [
      'has one more',
      { ...options, disposable: true },
      [{ check: 'options', found: expect.stringContaining('not deployed') }],
      ['npm run deploy'],
    ],
    ['is not JSON', '{', [{ check: 'options', found: expect.stringContaining('is not valid JSON') }], []],
    [
      'has an unknown option',
      { ...options, reservedConcurency: 1 },
      [{ check: 'options', found: expect.stringContaining('reservedConcurency') }],
      [],
    ],
  ])(
    'compares the file of the stage with the deployed stack: it %s',
    async (_case, content, finding, lines) => {
      const found = attentionOf(await examine(content)).filter(({ check }) => check === 'options');
      expect(found).toMatchObject(finding);
      expect(found.flatMap(({ set }) => set?.line ?? [])).toEqual(lines);
    },
  );

  it.each<[string, AccountState['broken'], string]>([
    ['fails', { lambda: [500, '{"message":"x"}', 'ServiceException'] }, 'ServiceException'],
    ['answers something else', { lambda: [200, '{"AccountLimit":{}}'] }, 'UnexpectedReply'],
    ['does not answer JSON', { lambda: [200, '<html>'] }, 'Lambda'],
    [
      'throttles',
      { lambda: [429, '{"message":"Rate exceeded"}', 'TooManyRequestsException'] },
      'Rate exceeded',
    ],
  ])('reports what it could not read if a service %s, and everything else', async (_case, broken, words) => {
    account.broken = broken;
    const examined = await examine();
    expect(attentionOf(examined)).toMatchObject([{ check: 'concurrency' }]);
    expect(attentionOf(examined)[0]?.found).toContain('unknown');
    expect(attentionOf(examined)[0]?.found).toContain(words);
    expect(examined.found).toHaveLength(7);
  });

  it('reports that a stack does not exist', async () => {
    account.stack = undefined;
    const examined = await examine();
    expect(attentionOf(examined)[0]).toMatchObject({
      check: 'stack',
      found: expect.stringContaining('no CloudFormation stack of this name'),
    });
  });

  it('reports a region without response streaming', async () => {
    const run = await rig.ops('support', ['doctor', '--options', fileOf(options)], {
      region: 'eu-central-2',
    });
    expect(run.output).toContain('attention       region: Lambda has no Function URLs in eu-central-2');
    expect(run.code).toBe(1);
  });

  it('explains with local tables why each check does not apply, and sends no request', async () => {
    const run = await rig.ops('support', ['doctor', '--json'], { isLocal: true });
    expect(run.code).toBe(0);
    const found = JSON.parse(run.output) as Found[];
    expect(found.map(({ state }) => state)).toEqual(Array.from({ length: 7 }, () => 'does not apply'));
    expect(account.asked).toEqual([]);
  });
});
