import { GetItemCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { tablesOn } from '../../../support/sdk-tables.ts';
import { dynamoAccountReader } from '../../../../shared/adapters/dynamodb/account-reader.ts';
import { dynamoQuotaStore } from '../../../../shared/adapters/dynamodb/quotas/quota-store.ts';
import { readWhole } from '../../../../shared/adapters/dynamodb/quotas/whole-account.ts';
import { splitWrite, imbalances } from '../../../../shared/billing/shards.ts';
import type { QuotaStore } from '../../../../shared/relay/ports/money-stores.ts';
import { GrantRig } from './grant-rig.ts';

let rig: GrantRig;
let quotas: QuotaStore;

beforeAll(async () => {
  rig = await GrantRig.open();
  quotas = dynamoQuotaStore(tablesOn(DynamoDBDocumentClient.from(rig.client)), 'relay');
});
afterAll(() => rig[Symbol.asyncDispose]());

async function splitAccount(account: string): Promise<void> {
  await rig.put(account, 'first', { amount: '0.000001' });
  await rig.run();
  const write = splitWrite(await quotas.read(account, 1, true), 4, new Map());
  expect(write && (await quotas.move(write))).toBe(true);
}

const whole = (account: string) =>
  dynamoAccountReader(tablesOn(DynamoDBDocumentClient.from(rig.client)), 'relay').quota(account);

test.each([
  ['-0.0000004', 600n],
  ['-0.000001', 0n],
  ['-0.0000013', -300n],
  ['0.000000003', 1003n],
])('a grant of %s to a split account changes all its parts, once', async (amount, left) => {
  const account = `split ${amount}`;
  await splitAccount(account);
  await rig.put(account, 'second', { amount });
  await rig.run();
  await rig.applier.applyMissed();
  const sums = await whole(account);
  expect(sums).toMatchObject({ available: left, granted: left, moved: 0n });
  expect(sums?.each && imbalances(sums.each)).toEqual([]);
  // No part can be spent that another one owes.
  const available = sums?.each?.map((item) => item.available) ?? [];
  if (left >= 0n) for (const each of available) expect(each).toBeGreaterThanOrEqual(0n);
  else for (const each of available) expect(each).toBeLessThanOrEqual(0n);
  expect(await rig.ledger(account)).toHaveLength(2);
});

test('a grant that meets a split is applied after it, in all parts', async () => {
  await rig.put('meets', 'first', { amount: '0.000001' });
  await rig.run();
  const write = splitWrite(await quotas.read('meets', 1, true), 4, new Map());
  await rig.put('meets', 'second', { amount: '-0.0000008' });
  await Promise.all([rig.run(), write && quotas.move(write)]);
  const sums = await whole('meets');
  expect(sums).toMatchObject({ available: 200n, granted: 200n, moved: 0n });
  expect((sums?.each ?? []).filter(({ available }) => available < 0n)).toEqual([]);
});

test('sums that are read during a split have all of its parts', async () => {
  await splitAccount('read');
  const split = splitWrite(await quotas.read('read', 4, true), 8, new Map());
  let splits = 0;
  const send = async (command: GetItemCommand): Promise<unknown> => {
    const reply = await rig.client.send(command);
    if (command instanceof GetItemCommand && split && splits === 0) {
      splits += 1;
      expect(await quotas.move(split)).toBe(true);
    }
    return reply;
  };
  const client = { send } as unknown as DynamoDBClient;
  const sums = await readWhole({ client: tablesOn(client), TableName: 'relay-quotas' }, 'read');
  expect(splits).toBe(1);
  expect(sums).toMatchObject({ available: 1000n, granted: 1000n, moved: 0n });
});
