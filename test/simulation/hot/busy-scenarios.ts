import { expect } from 'vitest';
import { BusyLedger, type BusyOptions } from './busy-ledger.ts';

export const runBusyLedger = (options: Partial<BusyOptions>): Promise<BusyLedger> =>
  new BusyLedger({ closesPerSecond: 2_000, seconds: 5, accounts: 10_000, shards: 8, ...options }).run();

/** Each close has one row, and all sums that operators read equal those of the calls. */
export async function expectCountedOnce(busy: BusyLedger): Promise<void> {
  expect(busy.tables.rows('ledger')).toHaveLength(busy.calls);
  expect(busy.put).toBe(busy.calls);
  const { read, expected } = await busy.sums();
  expect(read).toEqual(expected);
}
