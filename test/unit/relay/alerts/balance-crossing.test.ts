import { describe, expect, it } from 'vitest';
import { createQuotaItem, type OpenEntry, type QuotaItem } from '../../../../shared/billing/quota-item.ts';
import {
  accountOfShard,
  isWorthALook,
  findLowBalance,
} from '../../../../shared/relay/alerts/balance-watch.ts';

const limit = 1024n;
const item = (available: bigint, more: Partial<QuotaItem> = {}): QuotaItem => ({
  ...createQuotaItem('a'),
  available,
  granted: 5_000n,
  ...more,
});
const open = (amount: bigint) => new Map([['id', { amount } as OpenEntry]]);

describe('the watch checks the balance after a change of an account', () => {
  it.each<[string, QuotaItem | undefined, QuotaItem | undefined, boolean]>([
    ['when it falls below the limit', item(1_024n), item(1_023n), true],
    ['not while it stays at the limit or above', item(2_000n), item(1_024n), false],
    ['when it is back at the limit', item(1_023n), item(1_024n), true],
    ['when an account with a low balance is credited', item(1n), item(2n, { granted: 5_001n }), true],
    ['when an account with enough balance is debited', item(4_000n), item(3_000n, { granted: 4_000n }), true],
    ['when it is new', undefined, item(1n), true],
    ['not when it is removed', item(1n), undefined, false],
    ['not when a call is reserved', item(1_100n), item(900n, { open: open(200n) }), false],
    ['when a low shard spends one step', item(500n, { spent: 7n }), item(499n, { spent: 8n }), true],
    ['not when a low shard changes otherwise', item(500n), item(400n, { open: open(100n) }), false],
  ])('%s', (_, before, after, expected) => {
    expect(isWorthALook({ item: 'a', account: 'a', before, after }, limit)).toBe(expected);
  });
});

describe('the watch finds a low balance', () => {
  it.each<[string, bigint | undefined, bigint | undefined, boolean]>([
    ['below the limit', 1_023n, limit, true],
    ['not at the limit', 1_024n, limit, false],
    ['below zero', -1n, limit, true],
    ['not without a limit', -1n, undefined, false],
    ['not before the account was used', undefined, limit, false],
  ])('%s', (_, balance, alertBelow, expected) => {
    expect(findLowBalance(balance, alertBelow) !== undefined).toBe(expected);
  });
});

it('the item id of a shard names its account', () => {
  expect(['acme', 'acme#7', 'acme#63', 'a-b'].map(accountOfShard)).toEqual(['acme', 'acme', 'acme', 'a-b']);
});
