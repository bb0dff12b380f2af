import { describe, expect, test } from 'vitest';
import { closeExpired, emptyQuota, imbalance, type OpenEntry } from '../../../shared/billing/quota-item.ts';
import { afterClose } from '../../support/quota-rules.ts';

const until = 1_763_700_000;
const grace = 120;
const entry: OpenEntry = {
  until,
  amount: 500n,
  input: 20n,
  key: '0123456789ab',
  model: 'm',
  price: '7:tokens:0.001:0.002',
  slot: '',
  official: false,
  tombstone: false,
};

function expired(changes: Partial<OpenEntry> = {}, nowSeconds = until + grace + 1) {
  const open = new Map([['call', { ...entry, ...changes }]]);
  const item = {
    ...emptyQuota('acme'),
    granted: 500n,
    open,
    plan: new Map([['demo@2026-11-01', 3]]),
    places: new Map([[entry.key, new Set(['call', 'other'])]]),
  };
  const [write] = closeExpired(item, nowSeconds, grace);
  return { write, after: write && afterClose(item, write) };
}

describe('an open reservation', () => {
  test.each([
    [until - 1, false],
    [until + grace, false],
    [until + grace + 1, true],
  ])('is given up only after its last moment and the grace: at %i %s', (nowSeconds, given) => {
    expect(expired({}, nowSeconds).write !== undefined).toBe(given);
  });

  test('is charged its input, and the rest returns', () => {
    const { write, after } = expired();
    expect(write?.closeRecord).toEqual({ id: 'call', kind: 'expired', charge: 20n, at: until + grace + 1 });
    expect(after).toMatchObject({ available: 480n, spent: 20n, settled: 1, open: new Map() });
    expect(after && imbalance(after)).toBeUndefined();
  });

  test('of a plan call costs nothing and stays counted; its key gets the place back', () => {
    const { after } = expired({ amount: 0n, slot: 'demo@2026-11-01' });
    expect(after?.plan.get('demo@2026-11-01')).toBe(3);
    expect(after?.places.get(entry.key)).toEqual(new Set(['other']));
    expect(after?.spent).toBe(0n);
  });

  test('of an official call costs nothing', () => {
    expect(expired({ amount: 0n, official: true }).write?.closeRecord).toMatchObject({
      kind: 'expired',
      charge: 0n,
    });
  });

  test('that only holds an id is cancelled', () => {
    const { write } = expired({ amount: 0n, tombstone: true });
    expect(write?.closeRecord).toMatchObject({ kind: 'cancelled', charge: 0n });
  });
});

test('only those that are due are closed, each by its own id', () => {
  const open = new Map([
    ['due', entry],
    ['later', { ...entry, until: until + 1 }],
    ['long ago', { ...entry, until: 0 }],
  ]);
  const writes = closeExpired({ ...emptyQuota('acme'), open }, until + grace + 1, grace);
  expect(writes.map(({ id, account }) => `${account} ${id}`)).toEqual(['acme due', 'acme long ago']);
});
