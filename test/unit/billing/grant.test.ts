import { expect, test } from 'vitest';
import { timeSortedIds } from '../../../shared/adapters/system/node-ports.ts';
import { changedAfterwards, grantLedgerRow } from '../../../shared/billing/ledger-row.ts';
import type { Clock } from '../../../shared/relay/ports/host.ts';

test('the ledger row of a grant sorts after every request id', () => {
  const row = grantLedgerRow(
    { account: 'acme', grant_id: '2026-11', amount: 5n, reason: 'paid' },
    '2026-11-21T00:00:00Z',
  );
  expect(row).toEqual({
    account: 'acme',
    id: 'grant#2026-11',
    at: '2026-11-21T00:00:00Z',
    kind: 'grant',
    amount: 5n,
    reason: 'paid',
  });
  const farAway: Clock = { now: () => Date.UTC(9999, 11, 31), sleep: () => Promise.resolve() };
  expect(timeSortedIds(farAway).next() < row.id).toBe(true);
});

test('a grant without a reason has an empty one', () => {
  expect(grantLedgerRow({ account: 'a', grant_id: 'g', amount: 1n }, '').reason).toBe('');
});

test('a changed amount is shown in yuan, found and wanted', () => {
  expect(changedAfterwards(5n, 5n)).toBeUndefined();
  expect(changedAfterwards(2_500_000_000n, -1n)).toBe(
    'amount: found 2.5, wanted -0.000000001, which was applied; grant the difference in a row of its own',
  );
});
