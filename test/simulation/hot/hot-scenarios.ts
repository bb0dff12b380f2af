import { expect } from 'vitest';
import { findImbalances } from '../../../shared/billing/shards.ts';
import { HotAccount, type HotOptions } from './hot-account.ts';

export const plan = {
  itemId: 'p',
  name: 'p',
  key: 'p@2026-11-01',
  staleKey: 'p@2026-09-01',
  limit: 1_000,
  resetsAtMs: 0,
};

/** 1,000 concurrent calls. */
export const busy: Omit<HotOptions, 'seconds'> = {
  callsPerSecond: 100,
  secondsPerCall: 10,
  balance: 100_000_000n,
  hold: 500n,
  spent: (chance) => 0.05 + 0.4 * chance,
};

/** No charge is lost or doubled, nothing stays open, and no part gains or loses money. */
export function expectExact(hot: HotAccount): void {
  const whole = hot.memory.whole('acme');
  expect(whole).toMatchObject({ spent: hot.due, moved: 0n, open: new Map(), permits: new Map() });
  expect((whole?.available ?? 0n) + (whole?.spent ?? 0n)).toBe(
    (whole?.granted ?? 0n) + (whole?.metered ?? 0n),
  );
  const [first, ...others] = hot.memory.items.values();
  if (!first) throw new Error('no item');
  expect(findImbalances([first, ...others])).toEqual([]);
}

export const refusedCalls = (hot: HotAccount): number =>
  [...hot.refused.values()].reduce((sum, { calls }) => sum + calls, 0);

/** A plan and a key with every limit: `seconds` of traffic, starting from one part, with crashes. */
export async function runBusyKey(seconds: number): Promise<HotAccount> {
  const limits = { slots: [plan], maxConcurrency: 1_500, rpm: 7_000, budget: 10_000_000n };
  const hot = await new HotAccount({ ...busy, seconds, ...limits, crash: 0.002 }).run();
  expectExact(hot);
  expect(hot.crashed).toBeGreaterThan(0);
  expect(refusedCalls(hot)).toBeLessThan(hot.calls / 1_000);
  expect(hot.parts).toBe(64);
  expect(hot.memory.whole('acme')?.plan.get(plan.key)).toBe(plan.limit);
  expect(Math.max(...hot.settlesMs)).toBeLessThan(5_000);
  const { inner } = hot.counters;
  expect([...inner.budgets.values()]).toEqual([{ used: hot.due, running: 0 }]);
  expect([...inner.rates.values()].reduce((sum, calls) => sum + calls, 0)).toBe(hot.calls);
  return hot;
}

/** Running calls reserve nearly the whole balance all the time. */
export async function runHeldBalance(seconds: number): Promise<HotAccount> {
  const hot = await new HotAccount({ ...busy, seconds, balance: 480_000n, spent: () => 0.001 }).run();
  expectExact(hot);
  expect([...hot.refused.keys()]).toEqual(['balance_reserved']);
  expect(hot.refused.get('balance_reserved')?.longestMs).toBeLessThanOrEqual(100);
  return hot;
}

/** 10,000 concurrent calls of a metered account without a balance, with crashes, on the partitions of a new table. */
export async function runMetered(seconds: number): Promise<HotAccount> {
  const hot = await new HotAccount({
    ...busy,
    callsPerSecond: 1_000,
    seconds,
    balance: 0n,
    metered: true,
    partitions: 4,
    crash: 0.002,
  }).run();
  expectExact(hot);
  expect(hot.crashed).toBeGreaterThan(0);
  expect(refusedCalls(hot)).toBe(0);
  return hot;
}
