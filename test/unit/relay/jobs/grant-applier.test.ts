import { PutItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { findImbalance } from '../../../../shared/billing/quota-item.ts';
import { unappliedMark } from '../../../../shared/billing/ledger-row.ts';
import { GrantRig, type Typed } from './grant-rig.ts';

const yuan = 1_000_000_000n;
const at = '2025-11-21T04:40:00Z';

let rig: GrantRig;
let account = '';
let accounts = 0;

beforeAll(async () => {
  rig = await GrantRig.open();
});
afterAll(() => rig[Symbol.asyncDispose]());
beforeEach(() => {
  account = `account ${(accounts += 1)}`;
  rig.forget();
});

async function balance(): Promise<{ available: bigint; granted: bigint } | undefined> {
  const item = await rig.quota(account);
  if (!item) return undefined;
  expect(findImbalance(item)).toBeUndefined();
  return { available: item.available, granted: item.granted };
}
const both = (amount: bigint) => ({ available: amount, granted: amount });

describe('a grant', () => {
  test.each([
    ['0.000000001', 1n],
    ['-30.5', -30_500_000_000n],
    ['999999999999.999999999', 999_999_999_999_999_999_999n],
    ['1e2', 100n * yuan],
  ])('of %s yuan is applied exactly', async (amount, nano) => {
    await rig.put(account, 'one', { amount });
    await rig.run();
    expect(await balance()).toEqual(both(nano));
  });

  test.each<[string, Typed]>([
    ['no amount', {}],
    ['an invalid amount', { amount: { S: 'a lot' } }],
    ['ten decimals', { amount: '0.0000000001' }],
    ['nothing', { amount: '0' }],
    ['a trillion', { amount: '1000000000000' }],
    ['a map', { amount: { M: { N: { NULL: true } } } }],
    ['NULL', { amount: { NULL: true }, reason: { NULL: true } }],
    // Lambda passes them as a text, `1000`.
    ['bytes', { amount: { B: Buffer.from('1000', 'base64') } }],
    ['a misspelt attribute', { amount: '5', reasn: 'gift' }],
  ])('of %s is marked with the expected value and delays no other grant', async (_, typed) => {
    await rig.put(account, 'bad', typed);
    await rig.put(account, 'good', { amount: '3' });
    await rig.run();
    expect(await balance()).toEqual(both(3n * yuan));
    const { problem, applied } = await rig.marks(account, 'bad');
    expect(problem).toMatch(
      /^(amount: (?:missing|found .*), expected an amount in yuan: not 0|reasn: unknown attribute)/,
    );
    expect(applied).toBeUndefined();
    expect(await rig.marks(account, 'good')).toEqual({ applied: at });
    expect(rig.metrics.counted).toEqual([]);
  });

  test('that is edited after it was applied is not applied again, and is marked until the edit is undone', async () => {
    await rig.put(account, 'one', { amount: '5' });
    await rig.run();
    await rig.put(account, 'one', { amount: '6' });
    await rig.run();
    expect(await balance()).toEqual(both(5n * yuan));
    const wanted = 'amount: found 6, expected 5, which was applied; grant the difference in a row of its own';
    expect(await rig.marks(account, 'one')).toEqual({ applied: at, problem: wanted });
    await rig.put(account, 'one', { amount: '5', _applied: at, _problem: wanted });
    await rig.run();
    expect(await rig.marks(account, 'one')).toEqual({ applied: at });
  });

  test('copied from an applied one with its marks is applied', async () => {
    await rig.put(account, 'copy', { amount: '5', _applied: '2020-01-01T00:00:00Z' });
    await rig.run();
    expect(await balance()).toEqual(both(5n * yuan));
    expect(await rig.marks(account, 'copy')).toEqual({ applied: at });
  });
});

describe('a grant to an account without a row', () => {
  test('is applied with a warning that stays until it is processed again with the row there', async () => {
    await rig.put(account, 'one', { amount: '5' });
    await rig.run();
    expect(await balance()).toEqual(both(5n * yuan));
    expect(await rig.warning(account, 'one')).toMatch(/^account: had no row/);
    await rig.createAccount(account);
    await rig.put(account, 'one', { amount: '5', _warning: (await rig.warning(account, 'one')) ?? '' });
    await rig.run();
    expect(await rig.warning(account, 'one')).toBeUndefined();
    expect(await balance()).toEqual(both(5n * yuan));
  });
});

describe('a grant that the account’s item cannot take', () => {
  test('is reported and marked, and blocks no other grant in the stream or the schedule', async () => {
    const broken = { account: { S: account }, available: { S: 'much' } };
    await rig.client.send(new PutItemCommand({ TableName: 'relay-quotas', Item: broken }));
    await rig.put(account, 'one', { amount: '5' });
    await rig.put(`${account} other`, 'one', { amount: '5' });
    expect(await rig.deliver(await rig.nextRecords())).toEqual({ batchItemFailures: [] });
    expect(rig.metrics.counted).toEqual(['GrantPoisoned']);
    expect(rig.log.events).toContainEqual({
      name: 'grant_poisoned',
      fields: expect.objectContaining({ account, grant_id: 'one' }) as unknown,
    });
    expect(await rig.marks(account, 'one')).toEqual({
      problem: "cannot be applied: the account's item in quotas does not take it",
    });
    expect(await rig.marks(`${account} other`, 'one')).toEqual({ applied: at });
    expect(await rig.ledger(account)).toEqual([]);
    await rig.dayOfSchedules();
    expect(rig.metrics.counted).toHaveLength(2);
    await rig.remove(account, 'one');
    await rig.run();
  });
});

describe('the grant schedule', () => {
  test('applies a marked grant that the stream missed, and removes the mark', async () => {
    await rig.put(account, 'missed', { amount: '5', ...unappliedMark });
    await rig.nextRecords();
    expect(await rig.unapplied()).toEqual([`${account} missed`]);
    await rig.applier.applyMissed();
    expect(await balance()).toEqual(both(5n * yuan));
    expect(await rig.unapplied()).toEqual([]);
    await rig.applier.applyMissed();
    expect(await balance()).toEqual(both(5n * yuan));
  });

  test('removes the mark from a grant that was already applied', async () => {
    await rig.put(account, 'copied', { amount: '5' });
    await rig.run();
    await rig.put(account, 'copied', { amount: '5', _applied: at, ...unappliedMark });
    await rig.nextRecords();
    await rig.applier.applyMissed();
    expect(await rig.unapplied()).toEqual([]);
    expect(await balance()).toEqual(both(5n * yuan));
  });

  test('applies unmarked grants that the stream missed within a day, once', async () => {
    await rig.put(account, 'missed', { amount: '5' });
    await rig.put(account, 'bad', { amount: { S: 'x' } });
    await rig.nextRecords();
    await rig.dayOfSchedules();
    expect(await balance()).toEqual(both(5n * yuan));
    expect((await rig.marks(account, 'missed')).applied).toBeDefined();
    expect((await rig.marks(account, 'bad')).problem).toMatch(/^amount: /);
    await rig.run();
    expect(await balance()).toEqual(both(5n * yuan));
  });
});
