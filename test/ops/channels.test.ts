import { DynamoDBDocumentClient, GetCommand, PutCommand } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { emulatorClient, startEmulator } from '../support/emulator.ts';
import type { Emulator } from '../support/emulator.ts';
import { newApiBalances } from '../support/new-api.ts';
import { startScriptedUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { runOps, wordsIn, type Words } from './run-ops.ts';

const secret = 'canary-secret-0123456789';

let emulator: Emulator;
let upstream: ScriptedUpstream;
let tables: DynamoDBDocumentClient;

beforeAll(async () => {
  emulator = await startEmulator();
  upstream = await startScriptedUpstream();
  tables = DynamoDBDocumentClient.from(emulatorClient(emulator.endpoint));
});
afterAll(async () => {
  tables.destroy();
  await upstream.close();
  await emulator.stop();
});

const ops = async (words: Words) =>
  runOps(['channel', ...wordsIn(words)], {
    AWS_ENDPOINT_URL_DYNAMODB: emulator.endpoint,
    UPSTREAM_KEY: secret,
    OTHER_KEY: `${secret}-of-another`,
  });
const add = async (id: string, ...attributes: string[]) =>
  ops(['new', id, `endpoint=${upstream.endpoint}`, ...attributes, '--wait', '0', '--yes']);
const rowOf = async (id: string) =>
  (await tables.send(new GetCommand({ TableName: 'relay-channels', Key: { id } }))).Item;
const put = async (row: Record<string, unknown>) =>
  tables.send(new PutCommand({ TableName: 'relay-channels', Item: row }));

describe('channel new', () => {
  it('writes an enabled row with only the given attributes', async () => {
    const run = await add(
      'full',
      'models=a,b',
      'secret=env:UPSTREAM_KEY',
      'priority=-5',
      'weight=0.5',
      'mapper=a=vendor/a',
    );
    expect(run).toMatchObject({
      code: 0,
      errors: 'warning: channels full: models: no price for a, b, so calls are free\n',
    });
    const { _by, _at, ...row } = (await rowOf('full')) ?? {};
    expect(row).toEqual({
      id: 'full',
      endpoint: upstream.endpoint,
      models: ['a', 'b'],
      secret: 'env:UPSTREAM_KEY',
      priority: -5,
      weight: 0.5,
      mapper: { a: 'vendor/a' },
      state: true,
    });
  });

  it('refuses to create an existing row', async () => {
    await add('once', 'models=a');
    const again = await add('once', 'models=b');
    expect(again.code).toBe(2);
    expect(again.errors).toContain('channel once already exists');
    expect(await rowOf('once')).toMatchObject({ models: ['a'] });
  });

  it('and its changes are shown field by field, long lists only with the members that differ', async () => {
    await add('long', 'models=a,b,c,d,e');
    const run = await ops(['set', 'long', 'models=b,c,d,e,f', 'state=no', '--dry-run']);
    expect(run.output).toContain(
      'Channel long\n    models: a, 4 unchanged -> f, 4 unchanged\n    state: enabled -> disabled\n',
    );
  });

  it.each([
    ['a private address', ['endpoint=https://10.0.0.1/v1'], 'which is not a public address'],
    ['http to a public address', ['endpoint=http://api.example.com/v1'], 'expected https://'],
    ['a secret instead of a reference', [`secret=${secret}`], 'secret: enter a reference'],
    [
      'a secret of another stack',
      ['secret=ssm:/relay/relay-two/a'],
      'stack relay can.t read ssm:/relay/relay-two/a',
    ],
    ['a broken mapper', ['mapper=a=b=c'], 'as public = upstream'],
    ['a priority that is not a number', ['priority=high'], 'priority: found "high"'],
  ])('refuses %s', async (_case, words, message) => {
    const run = await add('bad', 'models=a', ...words);
    expect(run.code).toBe(2);
    expect(run.errors).toMatch(new RegExp(message));
    expect(run.errors).not.toContain(secret);
    expect(await rowOf('bad')).toBeUndefined();
  });
});

describe('channel balance', () => {
  const lines = async (words: string) => {
    const run = await ops(words);
    expect(run.output + run.errors).not.toContain(secret);
    return { ...run, listed: run.code === 0 ? (JSON.parse(run.output) as { channel: string }[]) : [] };
  };

  it('shows the balance for each secret, or why it is unknown, and never the secret itself', async () => {
    const site = await startScriptedUpstream();
    onTestFinished(() => site.close());
    site.script(newApiBalances({ [secret]: { limit: 10, used: 9.5 } }));
    await put({
      id: 'site',
      endpoint: site.endpoint,
      models: ['m'],
      balance_form: 'new-api',
      balance_below: '0.6',
      secret: ['env:UPSTREAM_KEY', 'env:OTHER_KEY', 'env:MISSING_KEY'],
      state: true,
    });
    await put({
      id: 'mute',
      endpoint: upstream.endpoint,
      models: ['m'],
      secret: 'env:UPSTREAM_KEY',
      state: true,
    });
    const { listed, code } = await lines('balance --json');
    expect(code).toBe(0);
    const named = { channel: 'site', balance_below: 0.6 };
    const unknown = { ...named, amounts: null, low: null };
    expect(listed).toEqual([
      {
        ...named,
        secret: 'env:UPSTREAM_KEY',
        amounts: [{ unit: 'USD', amount: '0.5' }],
        low: true,
        problem: null,
      },
      { ...unknown, secret: 'env:OTHER_KEY', problem: 'no balance in the answer (status 401)' },
      { ...unknown, secret: 'env:MISSING_KEY', problem: expect.stringContaining('MISSING_KEY') as string },
    ]);
    const { output } = await ops('balance site');
    expect(output).toMatch(/site +env:UPSTREAM_KEY +0\.5 USD +0\.6/);
  });

  it('names the missing attribute if the answer has an unknown form', async () => {
    const { code, errors } = await lines('balance mute');
    expect(code).toBe(1);
    expect(errors).toContain('balance_form');
  });
});

describe('channel list', () => {
  it('shows channels in the order of attempts, and invalid rows with their error but without their attributes', async () => {
    await put({ id: 'typo', endpoint: upstream.endpoint, models: ['m'], secret, state: true });
    await put({
      id: 'top',
      endpoint: upstream.endpoint,
      models: new Set(['z', 'y']),
      priority: 99,
      state: true,
    });
    const run = await ops('list --json');
    const listed = JSON.parse(run.output) as { id: string }[];
    expect(listed[0]).toMatchObject({ id: 'top', state: 'on', models: ['y', 'z'] });
    expect(listed.at(-1)).toEqual({
      attempts_14d: 0,
      attempts: 0,
      failed_attempts: 0,
      first_content_p50_ms: null,
      first_content_p95_ms: null,
      marks: [],
      failures_14d: 0,
      idle: false,
      failing: false,
      last_call: null,
      last_failure: null,
      id: 'typo',
      state: 'bad',
      problem: expect.stringContaining('secret: found a value that is not a reference') as string,
    });
    const table = await ops('list');
    expect(table.errors).toContain('typo is invalid: secret:');
    expect(run.output + table.output + table.errors).not.toContain(secret);
  });
});

describe('channel test', () => {
  it('sends one small streamed request with the mapped model and the secret, and shows the answer', async () => {
    await add('live', 'models=a,b', 'secret=env:UPSTREAM_KEY', 'mapper=b=vendor/b');
    const run = await ops('test live --model b');
    expect(run.errors).toBe('');
    expect(run.code).toBe(0);
    expect(run.output).toMatch(/Status 200 after \d+ ms/);
    expect(run.output).toContain('Hello there.');
    const call = await upstream.nextRequest();
    expect(call).toMatchObject({ method: 'POST', path: '/v1/chat/completions' });
    expect(call.headers['authorization']).toBe(`Bearer ${secret}`);
    expect(call.body).toMatchObject({ model: 'vendor/b', stream: true, max_tokens: 64 });
  });

  it('shows an upstream’s error, without the secret', async () => {
    await add('refused', 'models=a', 'secret=env:UPSTREAM_KEY');
    upstream.script((_call, reply) => {
      reply.head(401);
      reply.end(`bad key ${secret}\u001b[31m`);
    });
    const run = await ops('test refused');
    expect(run.code).toBe(1);
    expect(run.output).toContain('Status 401');
    expect(run.errors).toContain('bad key (secret)');
    expect(run.output + run.errors).not.toContain(secret);
    expect(run.errors).not.toContain('\u001b');
  });

  it('explains why there is no answer', async () => {
    await put({ id: 'away', endpoint: 'http://127.0.0.1:1/v1', models: ['a'], state: false });
    const run = await ops('test away');
    expect(run).toMatchObject({ code: 1, errors: 'the upstream did not respond: ECONNREFUSED\n' });
  });

  it.each([
    ['a channel that does not exist', ['test', 'nobody'], 2, 'no channel nobody: see `channel list`'],
    [
      'a model that the channel does not serve',
      ['test', 'full', '--model', 'x'],
      2,
      'choose one with --model',
    ],
    ['an unset variable', ['test', 'full', '--secret-env', 'UNSET'], 1, 'UNSET is not set in this shell'],
  ])('reports %s', async (_case, words, code, message) => {
    const run = await ops(words);
    expect(run.code).toBe(code);
    expect(run.errors).toContain(message);
  });
});

describe('channel probe', () => {
  const requestsDuring = async (words: string[]) => {
    const asked: string[] = [];
    upstream.script(({ path, body }, reply) => {
      asked.push(path);
      if (path !== '/v1/chat/completions') return reply.json(404, { error: { message: 'Not Found' } });
      if (body['reasoning_effort'] !== undefined)
        return reply.json(400, { error: { message: `no ${secret}` } });
      reply.json(200, {
        choices: [{ message: { content: '{"status":"fine"}' }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      });
    });
    return { run: await ops(words), asked };
  };

  it('shows the cost and asks before it sends anything', async () => {
    await add('probed', 'models=a', 'secret=env:UPSTREAM_KEY');
    const { run, asked } = await requestsDuring(['probe', 'probed']);
    expect(run.code).toBe(2);
    expect(run.output).toContain(`Send up to 12 calls to ${upstream.endpoint}, model a`);
    expect(run.output).toContain('Expected usage: 1800 input and 1800 output tokens (at most');
    expect(run.errors).toContain('Re-run with --yes: there is no terminal to confirm');
    expect(asked).toEqual([]);
    expect(await rowOf('probed')).not.toHaveProperty('_can');
  });

  it('writes only what the calls prove, and shows it', async () => {
    await ops('set probed models=a secret=env:UPSTREAM_KEY --wait 0 --yes');
    const before = await rowOf('probed');
    const { run, asked } = await requestsDuring(['probe', 'probed', '--yes']);
    expect(run).toMatchObject({ code: 0, errors: '' });
    expect(await rowOf('probed')).toEqual({
      ...before,
      _at: expect.any(String),
      _can: {
        model: 'a',
        tools: false,
        json_schema: true,
        images: true,
        system_anywhere: true,
        usage_streaming: true,
        efforts: [],
        dialects: ['chat'],
      },
    });
    expect(run.output).toMatch(/tools +no\nparallel_tools +unknown\njson_schema +yes/);
    expect(run.output).toMatch(/efforts +none\ndialects +chat\n/);
    expect(run.output).toContain(`Sent ${asked.length} calls.`);
  });
});

describe('a channel whose secret is a variable that the stack must not read', () => {
  const marked = {
    id: 'marked',
    models: ['a'],
    endpoint: 'https://api.example.com/v1',
    secret: 'env:HOME',
    state: true,
    _problem:
      'secret: found an env: reference to a variable that rows cannot read; start the stack with RELAY_ENV_SECRETS=HOME to allow it',
  };

  it('is invalid in lists and `check`, because the stack marked it: only the stack knows which variables it may read', async () => {
    await put(marked);
    expect((await ops('list')).output).toMatch(/^marked +bad\b/m);
    const environment = { AWS_ENDPOINT_URL_DYNAMODB: emulator.endpoint };
    for (const words of [['check'], ['channel', 'show', 'marked']]) {
      const { output, errors } = await runOps(words, environment);
      expect(output + errors).toContain('RELAY_ENV_SECRETS=HOME');
    }
  });
});
