import { PutItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  createAlertAccounts,
  createAlertStore,
  createNoticeStore,
} from '../../shared/adapters/dynamodb/alerts/alert-store.ts';
import { createQuotaStore } from '../../shared/adapters/dynamodb/quotas/quota-store.ts';
import { documentClient, tablesOn } from '../support/sdk-tables.ts';
import { buildLateRow } from '../../shared/billing/ledger-row.ts';
import { planJoin, type ShardsWrite, planSplit } from '../../shared/billing/shards.ts';
import type { QuotaItem } from '../../shared/billing/quota-item.ts';
import { emulatorClient, startEmulator, type Emulator } from '../support/emulator.ts';
import { MemoryAlertStores } from '../support/memory-alert-stores.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { countedClient, localAccess } from '../unit/adapters/dynamodb/store.ts';
import { alertStoresContract } from './alert-stores.ts';
import { attributesOf } from './quota-store-dynamo.ts';
import { closeOf, itemOf, reserveOf } from './quota-store-rig.ts';

let emulator: Emulator;
beforeAll(async () => {
  emulator = await startEmulator();
});
afterAll(() => emulator.stop());

async function putQuota(endpoint: string, item: QuotaItem): Promise<void> {
  const client = emulatorClient(endpoint);
  await client.send(new PutItemCommand({ TableName: 'relay-quotas', Item: attributesOf(item) }));
  client.destroy();
}

alertStoresContract('in memory', async () => {
  const stores = new MemoryAlertStores();
  return { marks: stores, notices: stores, [Symbol.asyncDispose]: async () => {} };
});

alertStoresContract('on DynamoDB', async () => {
  const own = await startEmulator();
  process.env['AWS_ENDPOINT_URL_DYNAMODB'] = own.endpoint;
  const client = documentClient(localAccess);
  return {
    marks: createAlertStore(tablesOn(client), 'relay'),
    notices: createNoticeStore(tablesOn(client), 'relay'),
    async [Symbol.asyncDispose]() {
      client.destroy();
      await own.stop();
    },
  };
});

it('on DynamoDB the balance adds up all shards while an account is split, spent, charged late and joined', async () => {
  process.env['AWS_ENDPOINT_URL_DYNAMODB'] = emulator.endpoint;
  const { client } = countedClient();
  const accounts = createAlertAccounts({
    client: tablesOn(client),
    clock: new VirtualClock(),
    stack: 'relay',
    local: false,
  });
  const quotas = createQuotaStore(tablesOn(client), 'relay');
  const move = async (write: ShardsWrite | undefined) => write && quotas.move(write);
  const account = 'busy';
  expect(await accounts.balance(account)).toBeUndefined();
  await putQuota(emulator.endpoint, itemOf(account, { available: 1_000n }));

  expect(await move(planSplit(await quotas.read(account, 1, true), 4, new Map()))).toBe(true);
  expect(await accounts.balance(account)).toBe(1_000n);

  const write = { ...reserveOf(account, { amount: 100n }), shard: 1 };
  await quotas.reserve(write);
  expect(await accounts.balance(account)).toBe(1_000n);
  await quotas.close({ ...closeOf(account, { entry: write.entry, charge: 30n }), shard: 1 });
  expect(await accounts.balance(account)).toBe(970n);

  const late = buildLateRow(closeOf(account, { entry: write.entry }), 7n);
  await quotas.chargeLate({ difference: 7n, row: late });
  expect(await accounts.balance(account)).toBe(963n);

  expect(await move(planJoin(await quotas.read(account, 4, true)))).toBe(true);
  expect(await accounts.balance(account)).toBe(963n);
  const images = await quotas.read(account, 64, true);
  expect(images.map(({ shard: part, available }) => [part, available])).toEqual([
    [0, 963n],
    [1, 0n],
    [2, 0n],
    [3, 0n],
  ]);
  client.destroy();
});

it('on DynamoDB the limit is read exactly from the account row and cached for 5 minutes', async () => {
  process.env['AWS_ENDPOINT_URL_DYNAMODB'] = emulator.endpoint;
  const store = countedClient();
  const { client, calls } = store;
  const clock = new VirtualClock();
  const accounts = createAlertAccounts({ client: tablesOn(client), clock, stack: 'relay', local: false });
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
