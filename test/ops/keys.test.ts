import { createHash } from 'node:crypto';
import {
  DynamoDBDocumentClient,
  DeleteCommand,
  GetCommand,
  PutCommand,
  ScanCommand,
} from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { emulatorClient, startEmulator } from '../support/emulator.ts';
import type { Emulator } from '../support/emulator.ts';
import { runOps, runOpsAttended, type Words } from './run-ops.ts';

interface MadeKey {
  key: string;
  hash: string;
  hint: string;
}

let emulator: Emulator;
let tables: DynamoDBDocumentClient;

beforeAll(async () => {
  emulator = await startEmulator();
  tables = DynamoDBDocumentClient.from(emulatorClient(emulator.endpoint));
});
afterAll(async () => {
  tables.destroy();
  await emulator.stop();
});

const ops = async (words: Words, input?: string) =>
  runOps(words, { AWS_ENDPOINT_URL_DYNAMODB: emulator.endpoint }, input);
const rowOf = async (hash: string) =>
  (await tables.send(new GetCommand({ TableName: 'relay-keys', Key: { hash } }))).Item;
const makeKey = async (...words: string[]): Promise<MadeKey> => {
  const run = await ops(['key', 'new', 'acme', '--json', ...words]);
  expect(run).toMatchObject({ code: 0 });
  return JSON.parse(run.output) as MadeKey;
};
const sha256 = (written: string) => createHash('sha256').update(written).digest('hex');

describe('key new', () => {
  it.each([
    ['store=yes', true, 'stores responses'],
    ['store=no', false, 'stores nothing'],
  ])(
    'with %s decides whether the key stores responses, regardless of the setting',
    async (option, store, words) => {
      const run = await ops(`key new stored ${option}`);
      expect(run.output).toContain(words);
      const [key] = run.output.match(/sk-[A-Za-z0-9_-]{48}/) ?? [];
      expect((await rowOf(sha256(String(key))))?.['store']).toBe(store);
      expect((await ops('key list --account stored')).output).toContain(words);
    },
  );

  it('without either option uses the setting', async () => {
    const run = await ops('key new stored');
    const [key] = run.output.match(/sk-[A-Za-z0-9_-]{48}/) ?? [];
    expect(await rowOf(sha256(String(key)))).not.toHaveProperty('store');
  });

  it('shows the key once, stores only its hash, and creates the account', async () => {
    const run = await ops(['key', 'new', 'new-account', 'models=a, b', 'rpm=60']);
    expect(run.code).toBe(0);
    expect(run.output.split('\n')[0]).toBe(`local tables at ${emulator.endpoint} (relay-*)`);
    const keys = run.output.match(/sk-[A-Za-z0-9_-]{48}/g) ?? [];
    expect(keys).toHaveLength(1);
    expect(run.output).toContain("Save this key now; it can't be shown again");
    const row = await rowOf(sha256(String(keys[0])));
    expect(row).toMatchObject({ account: 'new-account', models: ['a', 'b'], rpm: 60, enabled: true });
    const accounts = await tables.send(new ScanCommand({ TableName: 'relay-accounts' }));
    expect(accounts.Items).toContainEqual(expect.objectContaining({ account: 'new-account' }));
    const all = await tables.send(new ScanCommand({ TableName: 'relay-keys' }));
    expect(JSON.stringify(all.Items)).not.toContain(keys[0]);
  });

  it('does not change an existing account', async () => {
    const account = { account: 'acme', note: 'a good customer' };
    await tables.send(new PutCommand({ TableName: 'relay-accounts', Item: account }));
    await makeKey();
    const found = await tables.send(
      new GetCommand({ TableName: 'relay-accounts', Key: { account: 'acme' } }),
    );
    expect(found.Item).toEqual(account);
  });

  it.each([
    [['expires_at=2020-01-01'], 'it expired at 2020-01-01T00:00:00Z'],
    [
      ['expires_at=tomorow'],
      'expires_at: invalid time "tomorow", expected a time such as 2h, 14:05, yesterday 14:05,',
    ],
    [['rpm=1.5'], 'rpm: found 1.5, expected a whole number of 1 or more'],
    [['models=gpt-*'], 'models[0]: found "gpt-*", expected a model name'],
    [['rmp=60'], 'rmp: unknown attribute (did you mean rpm?'],
    [['modles=gpt-4o'], 'modles: unknown attribute (did you mean models?'],
    [['budget.amout=5'], 'budget.amout: unknown attribute (did you mean budget.amount?)'],
    [['limits.rpm.x=5'], 'limits.rpm.x: unknown attribute (did you mean rpm?)'],
    [['rpm'], 'write attributes as NAME=VALUE, for example models=a,b'],
  ])('rejects a key that would not work: %j', async (words, message) => {
    const run = await ops(['key', 'new', 'nobody', ...words]);
    expect(run.code).toBe(2);
    expect(run.errors).toContain(message);
    expect(run.output).not.toContain('sk-');
  });
});

describe('key check predicts the relay’s answer', () => {
  it('to a usable key, read from standard input', async () => {
    const { key } = await makeKey('models=gpt-4o');
    const run = await ops('key check', `${key}\n`);
    expect(run).toMatchObject({ code: 0 });
    expect(run.output).toContain('of account acme works: models: gpt-4o');
    expect(run.output).not.toContain(key);
  });

  it.each([
    ['disabled', { enabled: false }, 'is disabled'],
    ['expired', { expires_at: '2020-01-01T00:00:00Z' }, 'is expired: it expired at 2020-01-01T00:00:00Z'],
    ['of another kind', { agent: 'web' }, 'is of the wrong kind: agent is web'],
    ['unreadable', { enabled: 'ja' }, 'is invalid: enabled: found "ja", expected true or false'],
  ])('to a key whose row is %s', async (_case, attributes, message) => {
    const { key, hash } = await makeKey();
    await tables.send(
      new PutCommand({ TableName: 'relay-keys', Item: { hash, account: 'acme', ...attributes } }),
    );
    const run = await ops(`key check ${key}`);
    expect(run.code).toBe(1);
    expect(run.errors).toContain(message);
    expect(run.errors).toContain('401 invalid_api_key');
  });

  it('to a key whose account is disabled', async () => {
    const { key } = JSON.parse((await ops('key new closed --json')).output) as MadeKey;
    await tables.send(
      new PutCommand({ TableName: 'relay-accounts', Item: { account: 'closed', enabled: false } }),
    );
    const run = await ops(`key check ${key}`);
    expect(run.code).toBe(1);
    expect(run.errors).toContain('is disabled with its customer: its customer is disabled');
  });

  it.each([
    ['sk-nobody-made-this-one', 'is unknown: this key does not exist'],
    ['pk-123', 'is malformed'],
    ['sk-with blank', 'is malformed'],
  ])('to %s', async (key, message) => {
    const run = await ops(['key', 'check', '--json', key]);
    expect(run.code).toBe(1);
    expect(run.errors).toContain(message);
    expect(JSON.parse(run.output)).toHaveProperty('state');
  });
});

describe('key list', () => {
  it('shows keys of one account by hint, never the key', async () => {
    const { key, hint, hash } = await makeKey();
    await runOps('key new other', { AWS_ENDPOINT_URL_DYNAMODB: emulator.endpoint });
    const run = await ops('key list --account acme');
    expect(run.output).toContain(`${hint}  ${hash.slice(0, 12)}  acme`);
    expect(run.output).not.toContain('other');
    expect(run.output).not.toContain(key);
  });
});

describe('key off', () => {
  it('disables the key, given by the start of its hash', async () => {
    const { key, hash } = await makeKey('rpm=5');
    expect(await ops(`key off ${hash.slice(0, 10)} --yes`)).toMatchObject({ code: 0 });
    expect(await rowOf(hash)).toMatchObject({ enabled: false, rpm: 5 });
    expect((await ops(`key check ${key}`)).errors).toContain('is disabled');
  });

  it.each([
    ['no', 'n'],
    ['Ctrl-C', '\u0003'],
    ['Ctrl-D, the end of the input', '\u0004'],
  ])('changes nothing if the answer is %s', async (_case, answer) => {
    const { hash } = await makeKey();
    const environment = { AWS_ENDPOINT_URL_DYNAMODB: emulator.endpoint };
    const run = await runOpsAttended(['key', 'off', hash], environment, [['[y/N]', answer]]);
    expect(run.code).toBe(1);
    expect(run.errors).toMatch(/nothing was changed\n$/);
    expect(await rowOf(hash)).toMatchObject({ enabled: true });
  });

  it('asks for a longer hash if several keys match', async () => {
    const twins = ['0', '1'].map((end) => 'abcd'.padEnd(63, '0') + end);
    for (const hash of twins) {
      await tables.send(new PutCommand({ TableName: 'relay-keys', Item: { hash, account: 'twins' } }));
    }
    const run = await ops('key off abcd0 --yes');
    expect(run.code).toBe(2);
    expect(run.errors).toContain('Use more characters of the hash');
    for (const hash of twins) {
      await tables.send(new DeleteCommand({ TableName: 'relay-keys', Key: { hash } }));
    }
  });

  it.each([
    ['0000', 2, 'no key with this hash or hint: see `key list`'],
    [
      'acme',
      2,
      'invalid key: use at least 4 characters of its hash, or its hint (sk-AbCd...wXyZ), from `key list`',
    ],
  ])('finds nothing for %s', async (written, code, message) => {
    const run = await ops(`key off ${written} --yes`);
    expect(run.code).toBe(code);
    expect(run.errors).toContain(message);
  });
});

describe('key rotate', () => {
  it('creates a key with the same rights, and the old one expires after the grace period', async () => {
    const old = await makeKey('models=a,b', 'max_concurrency=3');
    const before = Date.now();
    const run = await ops(`key rotate ${old.hint} --grace 2 --json --yes`);
    expect(run.code).toBe(0);
    const next = JSON.parse(run.output) as MadeKey;
    expect(next.key).not.toBe(old.key);
    expect(await rowOf(next.hash)).toMatchObject({
      account: 'acme',
      models: ['a', 'b'],
      max_concurrency: 3,
      hint: next.hint,
      _replaces: old.hash,
    });
    expect(await rowOf(next.hash)).not.toHaveProperty('expires_at');
    const end = Date.parse(String((await rowOf(old.hash))?.['expires_at']));
    expect(end - before).toBeGreaterThan(1.9 * 3_600_000);
    expect(end - before).toBeLessThan(2.1 * 3_600_000);
    expect((await ops(`key check ${old.key}`)).code).toBe(0);
  });

  it('never extends the life of the old key', async () => {
    const end = new Date(Date.now() + 3_600_000).toISOString().replace(/\.\d+Z$/, 'Z');
    const old = await makeKey(`expires_at=${end}`);
    const run = await ops(`key rotate ${old.hint} --json --yes`);
    const next = JSON.parse(run.output) as MadeKey;
    expect(await rowOf(old.hash)).toHaveProperty('expires_at', end);
    expect(await rowOf(next.hash)).toHaveProperty('expires_at', end);
  });

  it('creates no successor for an unusable key, and asks before rotating without a grace period', async () => {
    const { hash, hint } = await makeKey();
    expect(await ops(`key rotate ${hint} --grace 0`)).toMatchObject({ code: 2 });
    expect(await ops(`key rotate ${hint} --grace -1`)).toMatchObject({ code: 2 });
    await ops(`key off ${hash} --yes`);
    const run = await ops(`key rotate ${hint}`);
    expect(run.code).toBe(1);
    expect(run.errors).toContain('does not work (it is disabled)');
    expect(run.output).not.toContain('sk-');
  });
});
