import { afterAll, beforeAll, expect, it } from 'vitest';
import { dynamoAlertAccounts } from '../../shared/adapters/dynamodb/alerts/dynamo-alert-accounts.ts';
import { dynamoAlertStore } from '../../shared/adapters/dynamodb/alerts/dynamo-alert-store.ts';
import { dynamoNoticeStore } from '../../shared/adapters/dynamodb/alerts/dynamo-notice-store.ts';
import { documentClient } from '../../shared/adapters/dynamodb/dynamo-client.ts';
import { startEmulator, type Emulator } from '../support/emulator.ts';
import { MemoryAlertStores } from '../support/memory-alert-stores.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { countedClient, localAccess } from '../unit/adapters/dynamodb/store.ts';
import { alertStoresContract } from './alert-stores.ts';

let emulator: Emulator;
beforeAll(async () => {
  emulator = await startEmulator();
});
afterAll(() => emulator.stop());

alertStoresContract('in memory', async () => {
  const stores = new MemoryAlertStores();
  return { marks: stores, notices: stores, [Symbol.asyncDispose]: async () => {} };
});

alertStoresContract('on DynamoDB', async () => {
  const own = await startEmulator();
  process.env['AWS_ENDPOINT_URL_DYNAMODB'] = own.endpoint;
  const client = documentClient(localAccess);
  return {
    marks: dynamoAlertStore(client, 'relay'),
    notices: dynamoNoticeStore(client, 'relay'),
    async [Symbol.asyncDispose]() {
      client.destroy();
      await own.stop();
    },
  };
});

it('on DynamoDB a balance is the sum over all parts of the account, joined ones too, and unknown before its first use', async () => {
  process.env['AWS_ENDPOINT_URL_DYNAMODB'] = emulator.endpoint;
  const store = countedClient();
  const { client } = store;
  const accounts = dynamoAlertAccounts({ client, clock: new VirtualClock(), stack: 'relay', local: false });
  await store.put('quotas', { account: 'whole', available: 4, granted: 10, spent: 6 });
  await store.put('quotas', { account: 'split', available: 1, granted: 100, spent: 20, parts: 2, made: 3 });
  await store.put('quotas', { account: 'split#1', available: 2, granted: 0, spent: 30, moved: 50 });
  await store.put('quotas', { account: 'split#2', available: 2, granted: 0, spent: 45, moved: 20 });
  expect(await accounts.balance('whole')).toBe(4n);
  expect(await accounts.balance('split')).toBe(5n);
  expect(await accounts.balance('unused')).toBeUndefined();
  client.destroy();
});

it('on DynamoDB a limit is read from the row of the account, exactly, and kept for 5 minutes', async () => {
  process.env['AWS_ENDPOINT_URL_DYNAMODB'] = emulator.endpoint;
  const store = countedClient();
  const { client, calls } = store;
  const clock = new VirtualClock();
  const accounts = dynamoAlertAccounts({ client, clock, stack: 'relay', local: false });
  await store.put('accounts', { account: 'acme', alert_below: 0.1 });
  await store.put('accounts', { account: 'wrong', alert_below: -1 });
  expect(await accounts.alertBelow('acme')).toBe(100_000_000n);
  expect(await accounts.alertBelow('acme')).toBe(100_000_000n);
  expect(await accounts.alertBelow('wrong')).toBeUndefined();
  expect(calls).toEqual(['GetItem relay-accounts', 'GetItem relay-accounts']);
  const pages = await Array.fromAsync(accounts.accounts());
  expect(pages.flat()).toMatchObject([{ account: 'acme' }]);
  client.destroy();
});
