import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { tablesOn } from '../../../support/sdk-tables.ts';
import { keyHash } from '../../../../shared/wire/ids.ts';
import { createKeyStore } from '../../../../shared/adapters/dynamodb/key-store.ts';
import { startEmulator, type Emulator } from '../../../support/emulator.ts';
import { steeredClock, type SteeredClock } from '../steered-clock.ts';
import { countedClient, type CountedClient } from './store.ts';

let emulator: Emulator;
let store: CountedClient;
let clock: SteeredClock;

beforeAll(async () => {
  emulator = await startEmulator();
  process.env['AWS_ENDPOINT_URL_DYNAMODB'] = emulator.endpoint;
});
afterAll(() => emulator.stop());

beforeEach(() => {
  store = countedClient();
  clock = steeredClock();
});

const open = () => createKeyStore({ client: tablesOn(store.client), clock, stack: 'relay' });
const rowOf = (secretKey: string, more: Record<string, unknown> = {}) => ({
  hash: keyHash(secretKey),
  account: 'acme',
  ...more,
});

describe('the key store', () => {
  test('finds a key by the hash of the whole key, with the defaults of its row', async () => {
    await store.put('keys', rowOf('sk-plain', { models: new Set(['b', 'a']) }));
    const found = await open().find('sk-plain');
    expect(found).toMatchObject({
      row: { account: 'acme', agent: 'api', enabled: true, official: false, models: ['a', 'b'] },
    });
  });

  test('discards a read of a key that was in progress when the environment was frozen', async () => {
    const keys = open();
    await store.put('keys', rowOf('sk-revoked'));
    const { promise: thawed, resolve: thaw } = Promise.withResolvers<void>();
    store.client.middlewareStack.add(
      (next) => async (args) => {
        const reply = await next(args);
        await thawed;
        return reply;
      },
      { step: 'initialize', name: 'freeze' },
    );
    const before = keys.find('sk-revoked');
    await expect.poll(() => store.calls).toContain('GetItem relay-keys');
    store.client.middlewareStack.remove('freeze');
    await store.put('keys', rowOf('sk-revoked', { enabled: false }));
    clock.advance(3_600_000);
    expect(await keys.find('sk-revoked')).toMatchObject({ row: { enabled: false } });
    thaw();
    await before;
    expect(await keys.find('sk-revoked')).toMatchObject({ row: { enabled: false } });
  });

  const budgets = [{ by: 'end_user', name: '*', amount: 1, period: 'day' }];
  test.each([
    ['holds its budgets', { budgets, rpm: 'many' }, { budgets }],
    ['allows nothing', { budgets: [{ by: 'user', amount: 1, period: 'day' }] }, { budgets: [{ amount: 0 }] }],
    ['has no row', { rpm: 'many' }, undefined],
  ])('loads an account with an invalid row, which %s: %j', async (_what, row, account) => {
    await store.put('keys', rowOf('sk-invalid', { account: 'invalid' }));
    await store.put('accounts', { account: 'invalid', ...row });
    const found = await open().find('sk-invalid');
    if (account) expect(found).toMatchObject({ account });
    else expect(found).toMatchObject({ account: undefined });
  });

  test.each([
    [{}, false],
    [{ enabled: true }, false],
    [{ enabled: ' TRUE ' }, false],
    [{ enabled: false }, true],
    [{ enabled: 'false' }, true],
    [{ enabled: 'perhaps' }, true],
    [{ enabled: false, plan: 'gold' }, true],
    [{ plan: 'gold' }, false],
  ])(
    'reports whether the account %j is disabled, whatever else is invalid in its row',
    async (row, accountOff) => {
      await store.put('keys', rowOf('sk-switched', { account: 'switched' }));
      await store.put('accounts', { account: 'switched', ...row });
      expect(await open().find('sk-switched')).toMatchObject({ accountOff });
    },
  );

  test('sees a disabled account within 30 seconds, and keeps the plan despite an invalid contact', async () => {
    await store.put('keys', rowOf('sk-leaving', { account: 'leaving' }));
    const plan = { level: 1, since: '2026-01-31' };
    await store.put('accounts', { account: 'leaving', plan, contact: 'me', alert_below: 'little' });
    const keys = open();
    expect(await keys.find('sk-leaving')).toMatchObject({
      accountOff: false,
      account: { plan: { level: 1 } },
    });
    await store.put('accounts', { account: 'leaving', enabled: false });
    clock.advance(30_001);
    expect(await keys.find('sk-leaving')).toMatchObject({ accountOff: true });
  });

  test('reports how many shards the account has, and works without that number', async () => {
    await store.put('keys', rowOf('sk-busy', { account: 'busy' }));
    await store.put('runtime', { id: 'parts#busy', parts: 16 });
    await store.put('keys', rowOf('sk-odd-parts', { account: 'odd-parts' }));
    await store.put('runtime', { id: 'parts#odd-parts', parts: 'many' });
    expect(await open().find('sk-busy')).toMatchObject({ shardCount: 16 });
    expect(await open().find('sk-odd-parts')).toMatchObject({
      row: { account: 'odd-parts' },
      shardCount: undefined,
    });
    expect(await open().find('sk-plain')).toMatchObject({ shardCount: undefined });
  });

  test('reads a key once in 30 seconds, and once for concurrent requests', async () => {
    await store.put('keys', rowOf('sk-warm'));
    const keys = open();
    await Promise.all([keys.find('sk-warm'), keys.find('sk-warm')]);
    clock.advance(29_999);
    await keys.find('sk-warm');
    expect(store.calls).toEqual(['GetItem relay-keys', 'GetItem relay-accounts', 'GetItem relay-runtime']);
    await store.put('keys', rowOf('sk-warm', { enabled: false }));
    clock.advance(1);
    expect(await keys.find('sk-warm')).toMatchObject({ row: { enabled: false } });
  });

  test('looks for an unknown key again after 5 seconds', async () => {
    const keys = open();
    await keys.find('sk-late');
    await store.put('keys', rowOf('sk-late'));
    clock.advance(4999);
    expect(await keys.find('sk-late')).toEqual({ missing: 'unknown' });
    clock.advance(1);
    expect(await keys.find('sk-late')).toHaveProperty('row');
  });
});
