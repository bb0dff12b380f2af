import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAccountReader } from '../../../../shared/adapters/dynamodb/account-reader.ts';
import { createQuotaStore } from '../../../../shared/adapters/dynamodb/quotas/quota-store.ts';
import { planSplit, findImbalances } from '../../../../shared/billing/shards.ts';
import type { QuotaStore } from '../../../../shared/relay/ports/money-stores.ts';
import { GrantRig } from './grant-rig.ts';

let rig: GrantRig;
let quotas: QuotaStore;

beforeAll(async () => {
  rig = await GrantRig.open();
  quotas = createQuotaStore(rig.tables, 'relay');
});
afterAll(() => rig[Symbol.asyncDispose]());

async function splitAccount(account: string): Promise<void> {
  await rig.put(account, 'first', { amount: '0.000001' });
  await rig.run();
  const write = planSplit(await quotas.read(account, 1, true), 4, new Map());
  expect(write && (await quotas.move(write))).toBe(true);
}

const whole = (account: string) => createAccountReader(rig.tables, 'relay').quota(account);

test.each([
  ['-0.0000004', 600n],
  ['-0.000001', 0n],
  ['-0.0000013', -300n],
  ['0.000000003', 1003n],
])('a grant of %s to a split account changes all its shards once', async (amount, left) => {
  const account = `split ${amount}`;
  await splitAccount(account);
  await rig.put(account, 'second', { amount });
  await rig.run();
  await rig.applier.applyMissed();
  const sums = await whole(account);
  expect(sums).toMatchObject({ available: left, granted: left, moved: 0n });
  expect(sums?.shards && findImbalances(sums.shards)).toEqual([]);
  // No shard may spend what another one owes.
  const available = sums?.shards?.map((item) => item.available) ?? [];
  if (left >= 0n) for (const each of available) expect(each).toBeGreaterThanOrEqual(0n);
  else for (const each of available) expect(each).toBeLessThanOrEqual(0n);
  expect(await rig.ledger(account)).toHaveLength(2);
});
