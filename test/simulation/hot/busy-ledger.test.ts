import { expect, it } from 'vitest';
import { expectCountedOnce, runBusyLedger } from './busy-scenarios.ts';

it('2,000 closes a second are counted once each, despite crashes, conflicts and lost replies', async () => {
  const busy = await runBusyLedger({ seconds: 1, shards: 4, crash: 0.5, lost: 0.02 });
  expect(busy.tables.counts.conflicts).toBeGreaterThan(0);
  expect(busy.tables.counts.lost).toBeGreaterThan(0);
  expect(busy.crashed).toBeGreaterThan(0);
  expect(busy.buckets.length).toBeGreaterThan(1);
  await expectCountedOnce(busy);
});

it('rows throttled by the store for 4 s are counted once later, and few writes are wasted', async () => {
  const busy = await runBusyLedger({
    closesPerSecond: 1_000,
    seconds: 6,
    shards: 8,
    partitions: 16,
    throttled: { fromSeconds: 1, toSeconds: 5 },
  });
  expect(busy.lagMs(100)).toBeLessThan(8_500);
  const { wasted, units } = busy.tables.counts;
  expect(wasted).toBeLessThan(0.25 * units);
  await expectCountedOnce(busy);
});

it('a quiet relay has one bucket for each sum', async () => {
  const busy = await runBusyLedger({ closesPerSecond: 2, shards: 1, seconds: 20 });
  expect(busy.buckets).toEqual(['served']);
  expect(busy.tables.counts.conflicts).toBe(0);
  await expectCountedOnce(busy);
});
