import { createHash } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { PassThrough, Readable } from 'node:stream';
import { Command } from 'commander';
import { initCommand } from '../../infra/ops/cli/commands/init.ts';
import { Terminal } from '../../infra/ops/cli/terminal.ts';
import { explainStoreError, openSession } from '../../infra/ops/session/session.ts';
import { Failure } from '../../shared/operate/plan.ts';
import type { SecretUse } from '../../shared/config/rows/secret-reference.ts';
import { createSecretWriter } from '../../shared/adapters/secrets/secret-writer.ts';
import { startScriptedUpstream, type ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startAws, type AwsOnLoopback } from './aws-on-loopback.ts';
import { ConfigRig } from './config-rig.ts';
import { runOps, runOpsAttended, runOpsProcess } from './run-ops.ts';

const secret = 'canary-secret-0123456789';
const baseUrl = 'https://d111.cloudfront.net/v1';

let rig: ConfigRig;
let aws: AwsOnLoopback;
let upstream: ScriptedUpstream;
/** Environment of the tool and the SDK for an AWS account with all services on this machine. */
let account: Record<string, string>;
beforeAll(async () => {
  [rig, aws, upstream] = await Promise.all([ConfigRig.start(), startAws(baseUrl), startScriptedUpstream()]);
  account = {
    AWS_REGION: 'eu-west-1',
    AWS_ACCESS_KEY_ID: 'test',
    AWS_SECRET_ACCESS_KEY: 'test',
    AWS_ENDPOINT_URL_SSM: aws.endpoint,
    AWS_ENDPOINT_URL_SECRETS_MANAGER: aws.endpoint,
  };
  upstream.script((call, reply) => {
    if (call.headers.authorization !== `Bearer ${secret}`) return reply.json(401, { error: 'no' });
    return reply.json(200, {
      data: ['gpt-4o', 'gpt-4o-mini', 'text-embedding-3', 'odd name'].map((id) => ({ id })),
    });
  });
});
afterAll(async () => {
  await Promise.all([rig.stop(), aws.close(), upstream.close()]);
});
afterEach(() => vi.unstubAllEnvs());

const environment = () => ({ ...account, AWS_ENDPOINT_URL_CLOUDFORMATION: aws.endpoint });
const hashOf = (key: string) => createHash('sha256').update(key).digest('hex');
const keyIn = (output: string) => String(/sk-[\w-]{48}/.exec(output)?.[0]);

describe('secret new', () => {
  it('stores standard input encrypted, prints only the reference, and leaves overwriting to `secret set`', async () => {
    const name = 'channels/api.openai.com/openai';
    const words = ['secret', 'new', name, '--stack', 'relay-two'];
    const over = ['secret', 'set', ...words.slice(2)];
    const run = await runOpsProcess(words, account, `${secret}\n`);
    expect(run.code).toBe(0);
    expect(run.output).toMatch(
      /^stack relay-two in eu-west-1 .*\nStore the secret as .*\nssm:\/relay\/relay-two\/channels\/api.openai.com\/openai\n$/,
    );
    expect(aws.stored.get(`SecureString /relay/relay-two/${name}`)).toBe(secret);

    for (const [name, value] of Object.entries(account)) vi.stubEnv(name, value);
    const again = await runOps(words, account, 'another');
    expect(again.code).toBe(2);
    expect(again.errors).toContain(`the secret /relay/relay-two/${name} already exists`);
    expect(await runOps(over, account, 'another')).toMatchObject({ code: 0 });
    expect(aws.stored.get(`SecureString /relay/relay-two/${name}`)).toBe('another');

    const managed = await runOps([...words, '--secretsmanager'], account, secret);
    expect(managed.output).toContain(`\nsecretsmanager:relay-two/${name}\n`);
    expect(await runOps([...words, '--secretsmanager'], account, 'x')).toMatchObject({ code: 2 });
    await runOps([...over, '--secretsmanager'], account, 'third');
    expect(aws.stored.get(`secret relay-two/${name}`)).toBe('third');
    for (const { output, errors } of [run, again, managed]) expect(output + errors).not.toContain(secret);
  });

  it.each([
    ['nothing', 'payments/links', '', 'no value on standard input'],
    [
      'two words',
      'payments/links',
      `export KEY=${secret} x`,
      'invalid value: it has spaces or characters that a key never has',
    ],
    ['a name without a purpose', 'openai', secret, 'channels/<host>/openai'],
    ['a channel’s key without its host', 'channels/openai', secret, 'channels/<host>/openai'],
    ['a search provider’s key without its host', 'search/tavily', secret, 'search/<host>/tavily'],
    ['a host that is not an endpoint', 'channels/API.openai.com/openai', secret, 'channels/<host>/openai'],
    [
      'a name that is a path',
      '../other/x y',
      secret,
      'invalid name: use A-Z a-z 0-9 . _ - and / as separator',
    ],
  ])('refuses %s', async (_case, name, value, message) => {
    const run = await runOps(['secret', 'new', name, '--stack', 'relay-two'], account, value);
    expect(run.code).toBe(2);
    expect(run.errors).toContain(message);
    expect(run.errors).not.toContain(secret);
  });

  it('prints the alternative for local tables, which have no secret store', async () => {
    const run = await rig.ops('secret new openai', secret);
    expect(run.code).toBe(2);
    expect(run.errors).toContain('use env:OPENAI_API_KEY in rows');
  });
});

describe('init', () => {
  it('creates no key if it cannot read what it must print with the key', async () => {
    const target = { stack: 'relay', endpoint: rig.endpoint, local: true };
    const { ports } = await openSession(target, {});
    const baseUrl = async (): Promise<string> => {
      throw new Failure('it is not there now');
    };
    const streams = { input: Readable.from([]), output: new PassThrough(), errors: new PassThrough() };
    const run = { ports: { ...ports, baseUrl }, terminal: new Terminal({ ...streams, environment: {} }) };
    const asked = { id: 'x', endpoint: upstream.endpoint, secret: false, models: ['m'], free: ['m'] };
    const words = [{ ...asked, account: 'unmade', wait: 0 }, new Command()] as never;
    await expect(initCommand.work(run, words, { yes: true })).rejects.toThrow('not there now');
    expect(await ports.tables.scan('keys')).toEqual([]);
  });

  it('asks questions, offers the upstream’s models, and prints a working key in a curl command', async () => {
    const environment = { AWS_ENDPOINT_URL_DYNAMODB: rig.endpoint, UPSTREAM_KEY: secret };
    // Written as by a running local stack.
    await rig.put('runtime', { id: 'local-log', base_url: 'http://127.0.0.1:9999/v1' });
    const run = await runOpsAttended(['init', '--wait', '0'], environment, [
      ['[openai]:', ''],
      ['Channel id [openai]:', 'first'],
      ['[https://api.openai.com/v1]:', upstream.endpoint],
      ["holds the upstream's API key:", 'UPSTREAM_KEY'],
      ['Models to serve, separated by commas (* matches anything):', ','],
      ['Models to serve, separated by commas (* matches anything):', 'gpt-5'],
      ['does not list gpt-5.\nModels to serve, separated by commas (* matches anything):', 'gpt-*'],
      ['Price list file in US dollars (Enter to type prices):', ''],
      [
        'Price of gpt-4o, input/output in yuan per million tokens (Enter for none; its calls are then refused):',
        '18',
      ],
      [
        'example 18/72.\nPrice of gpt-4o, input/output in yuan per million tokens (Enter for none; its calls are then refused):',
        '18/72',
      ],
      [
        'Price of gpt-4o-mini, input/output in yuan per million tokens (Enter for none; its calls are then refused):',
        '',
      ],
      ['Name of the first customer:', 'me'],
      ['Initial balance in yuan [0]:', '10'],
      ['[y/N]', 'y'],
    ]);
    expect(run.code).toBe(0);
    expect(run.output).toContain('gpt-4o  gpt-4o-mini  text-embedding-3\n');
    expect(await rig.row('charges', { id: 1 })).toMatchObject({
      models: ['gpt-4o'],
      input: 0.018,
      output: 0.072,
    });
    expect(await rig.row('charges', { id: 2 })).toBeUndefined();
    expect(await rig.row('settings', { name: 'unpriced_models' })).toMatchObject({ value: 'refuse' });
    expect(run.errors).toContain(
      'gpt-4o-mini has no price: its calls are refused until you set one with `charge price`',
    );
    expect(await rig.row('channels', { id: 'first' })).toMatchObject({
      id: 'first',
      endpoint: upstream.endpoint,
      secret: 'env:UPSTREAM_KEY',
      models: ['gpt-4o', 'gpt-4o-mini'],
      state: true,
    });
    expect(await rig.row('grants', { account: 'me', grant_id: 'init' })).toMatchObject({ amount: 10 });
    const key = keyIn(run.output);
    expect(await rig.row('keys', { hash: hashOf(key) })).toMatchObject({ account: 'me' });
    expect(run.output).toContain(
      `curl -N http://127.0.0.1:9999/v1/chat/completions -H "Authorization: Bearer ${key}"`,
    );
    expect(run.output).toContain('"model":"gpt-4o"');
  });

  it('with free models names the ones that the relay will reject', async () => {
    await rig.remove('settings', { name: 'unpriced_models' });
    const words = ['init', '--id', 'next', '--endpoint', upstream.endpoint, '--no-secret', '--account', 'me'];
    const run = await rig.ops([
      ...words,
      '--models',
      'o3',
      '--price',
      'o3=1/2',
      '--amount',
      '0',
      '--dry-run',
    ]);
    expect(run).toMatchObject({ code: 0 });
    expect(run.errors).toContain('warning: 1 model served for free so far will be refused: gpt-4o-mini\n');
    await rig.put('settings', { name: 'unpriced_models', value: 'refuse' });
  });

  describe('of a deployed stack', () => {
    const path = 'channels/api.openai.com/openai';
    const words =
      'init --stack relay --models gpt-4o-mini --price gpt-4o-mini=1.1/4.4 --account them --amount 5'.split(
        ' ',
      );
    beforeEach(() => {
      // The tool does not see the endpoint: it treats these as tables in AWS.
      for (const [name, value] of Object.entries(account)) vi.stubEnv(name, value);
      vi.stubEnv('AWS_ENDPOINT_URL_DYNAMODB', rig.endpoint);
    });

    it('stores a typed key without echoing it, and prints the address of the stack', async () => {
      const run = await runOpsAttended([...words, '--wait', '0'], environment(), [
        ['[openai]:', ''],
        ['Channel id [openai]:', ''],
        ['[https://api.openai.com/v1]:', ''],
        ['Secret (input is hidden):', secret],
        ['[y/N]', 'yes'],
      ]);
      expect(run.code).toBe(0);
      expect(aws.stored.get(`SecureString /relay/relay/${path}`)).toBe(secret);
      expect(run.output + run.errors).not.toContain(secret);
      const target = { stack: 'relay', local: false };
      const secrets = createSecretWriter({
        target,
        aws: async () => ({
          region: 'eu-west-1',
          credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
        }),
        environment: account,
        explain: (error) => explainStoreError(error, target),
      });
      const use = { purpose: 'channels', host: 'api.openai.com' } as const;
      const reading = (name: string, of: SecretUse = use) => secrets.read(`ssm:/relay/${name}`, of);
      expect(await reading(`relay/${path}`)).toBe(secret);
      await expect(reading('relay/other')).rejects.toThrow('SSM has no /relay/relay/other');
      await expect(reading('relay-two/openai')).rejects.toThrow('belongs to another stack');
      await expect(reading('relay/payments/links')).rejects.toThrow('stored for another purpose');
      await expect(reading(`relay/${path}`, { ...use, host: 'evil.example' })).rejects.toThrow(
        'another host',
      );
      expect(run.output).toContain(`curl -N ${baseUrl}/chat/completions`);
      expect(aws.describing.authorization).toMatch(/^AWS4-HMAC-SHA256 .*\/eu-west-1\/cloudformation\//);
      expect(await rig.row('channels', { id: 'openai' })).toMatchObject({
        secret: `ssm:/relay/relay/${path}`,
        models: ['gpt-4o-mini'],
      });
    });

    it('can be repeated unattended with the stored key, and grants only once', async () => {
      const taken = await runOps([...words, '--yes', '--wait', '0'], environment(), secret);
      expect(taken.errors).toContain(`re-run with --secret ssm:/relay/relay/${path}`);
      const reference = ['--secret', `ssm:/relay/relay/${path}`];
      const run = await runOps([...words, ...reference, '--yes', '--wait', '0'], environment());
      expect(run.code).toBe(0);
      expect(run.errors).toContain('already existed; nothing was written');
      expect(await rig.row('keys', { hash: hashOf(keyIn(run.output)) })).toMatchObject({ account: 'them' });
    });

    it.each([
      [['--account', 'a b '], 'account: found'],
      [['--amount', 'ten'], 'amount: found "ten"'],
      [['--type', 'azure'], '--endpoint is required: there is no terminal to ask'],
      [['--type', 'bedrock'], '--region is required: there is no terminal to ask'],
      [['--type', 'cohere'], 'use one of openai'],
      [['--endpoint', 'https://10.0.0.1/v1'], 'which is not a public address'],
      [['--models', 'other'], 'nothing was written: channel openai already exists; choose another --id'],
      [['--secret', 'ssm:/relay/relay/old', '--id', 'x'], 'a path without a purpose'],
      [['--secret', 'ssm:/relay/relay/payments/links', '--id', 'x'], 'found a secret of another purpose'],
    ])('writes nothing with %j', async (more, message) => {
      const before = aws.stored.size;
      const run = await runOps([...words, '--yes', ...more], environment(), secret);
      expect(run.code).toBe(2);
      expect(run.errors).toContain(message);
      expect(aws.stored.size).toBe(before);
      expect(run.output).not.toContain('is written');
    });
  });
});

const sync = async (...words: string[]) =>
  rig.ops(['channel', 'sync', 'synced', ...words], '', { UPSTREAM_KEY: secret });

describe('channel sync', () => {
  const channel = {
    id: 'synced',
    endpoint: '',
    secret: 'env:UPSTREAM_KEY',
    models: ['smart', 'old', 'old-name'],
    mapper: { smart: 'gpt-4o', 'old-name': 'gone' },
    state: true,
    _note: 'kept',
  };
  beforeEach(async () => rig.put('channels', { ...channel, endpoint: upstream.endpoint }));

  it('shows added and removed models of the upstream, asks, and writes only models and mapper', async () => {
    const asked = await sync();
    expect(asked.output).toContain('+ gpt-4o-mini\n+ text-embedding-3\n- old\n- old-name\n');
    expect(asked.output).toContain('The provider lists 3 models: 2 to add, 2 to remove.');
    expect(asked.errors).toContain('1 names of the upstream have characters that no row may have');
    expect(asked.errors).toContain('no price for');
    expect(asked.errors).toContain('Re-run with --yes: there is no terminal to confirm');
    expect(await rig.row('channels', { id: 'synced' })).toMatchObject({ models: channel.models });

    expect(await sync('--only', 'gpt-*', '--yes')).toMatchObject({ code: 0 });
    expect(await rig.row('channels', { id: 'synced' })).toMatchObject({
      ...channel,
      endpoint: upstream.endpoint,
      models: ['smart', 'gpt-4o-mini'],
      mapper: { smart: 'gpt-4o' },
    });
    expect((await sync('--only', 'gpt-*')).output).toContain('Nothing to change');
  });

  it('removes nothing with --keep, and writes nothing in a dry run', async () => {
    const run = await sync('--keep', '--dry-run', '--json');
    expect(JSON.parse(run.output)).toMatchObject({ removed: [], added: ['gpt-4o-mini', 'text-embedding-3'] });
    expect(run.errors).toContain('Dry run: nothing was written.');
  });

  it('never empties a channel, and prints the upstream’s answer without the key', async () => {
    const none = await sync('--only', 'nothing');
    expect(none.output).toContain('0 to add, 2 to remove');
    await rig.put('channels', { ...channel, endpoint: upstream.endpoint, models: ['old'], mapper: {} });
    const empty = await sync('--only', 'nothing', '--yes');
    expect(empty.code).toBe(1);
    expect(empty.errors).toContain(
      'nothing was written: no models would be left. Check the endpoint and the API key',
    );
    const refused = await rig.ops('channel sync synced', '', { UPSTREAM_KEY: 'wrong-key' });
    expect(refused.code).toBe(1);
    expect(refused.errors).toContain('did not return a list of models (status 401');
    const azure = {
      id: 'azure',
      type: 'azure',
      endpoint: 'https://a.openai.azure.com/openai/v1',
      models: ['m'],
    };
    await rig.put('channels', azure);
    expect((await rig.ops('channel sync azure')).errors).toContain('its channels serve deployments');
  });
});
