import { PutItemCommand, ScanCommand } from '@aws-sdk/client-dynamodb';
import { createPaymentStore } from '../../shared/adapters/dynamodb/payment-store.ts';
import { formatYuan } from '../../shared/billing/money.ts';
import { emulatorClient, startEmulator } from '../support/emulator.ts';
import { MemoryPaymentStore } from '../support/memory-payment-store.ts';
import { paymentStoreContract } from './payment-store.ts';
import { expect, test } from 'vitest';
import { tablesOn } from '../support/sdk-tables.ts';

paymentStoreContract('in memory', async () => {
  const store = new MemoryPaymentStore(['acme']);
  return {
    store,
    grants: async () =>
      [...store.grants.values()]
        .map(
          ({ account, grant_id, amount, reason }) => `${account} ${grant_id} ${formatYuan(amount)} ${reason}`,
        )
        .toSorted(),
    [Symbol.asyncDispose]: async () => {},
  };
});

paymentStoreContract('on DynamoDB', async () => {
  const emulator = await startEmulator();
  const client = emulatorClient(emulator.endpoint);
  await client.send(new PutItemCommand({ TableName: 'relay-accounts', Item: { account: { S: 'acme' } } }));
  return {
    store: createPaymentStore(tablesOn(client), 'relay'),
    async grants() {
      const { Items = [] } = await client.send(new ScanCommand({ TableName: 'relay-grants' }));
      return Items.map(
        ({ account, grant_id, amount, reason }) => `${account?.S} ${grant_id?.S} ${amount?.N} ${reason?.S}`,
      ).toSorted();
    },
    async [Symbol.asyncDispose]() {
      client.destroy();
      await emulator.stop();
    },
  };
});

test('the plan of a row with another invalid attribute is read, so the next month continues it', async () => {
  const emulator = await startEmulator();
  const client = emulatorClient(emulator.endpoint);
  const plan = { M: { level: { N: '2' }, since: { S: '2026-11-21' }, until: { S: '2027-02-21' } } };
  const Item = { account: { S: 'acme' }, rpm: { S: 'many' }, plan };
  await client.send(new PutItemCommand({ TableName: 'relay-accounts', Item }));
  const seen = await createPaymentStore(tablesOn(client), 'relay').account('acme');
  client.destroy();
  await emulator.stop();
  expect(seen?.plan).toEqual({ level: 2, since: Date.UTC(2026, 10, 21), until: Date.UTC(2027, 1, 21) });
});
