import { expect, it } from 'vitest';
import { expectCountedOnce, runBusyLedger } from './busy-scenarios.ts';

it('2,000 closes a second are counted once each, despite crashes, conflicts and lost replies', async () => {
  const busy = await runBusyLedger({ seconds: 2, shards: 4, crash: 0.5, lost: 0.02 });
  expect(busy.tables.counts.conflicts).toBeGreaterThan(0);
  expect(busy.tables.counts.lost).toBeGreaterThan(0);
  expect(busy.crashed).toBeGreaterThan(0);
  expect(busy.buckets.length).toBeGreaterThan(1);
  await expectCountedOnce(busy);
});

it('rows throttled by the store for 4 s are counted once later, and few writes are wasted', async () => {
  const busy = await runBusyLedger({ seconds: 8, shards: 16, throttled: { fromSeconds: 1, toSeconds: 5 } });
  expect(busy.lagMs(100)).toBeLessThan(13_000);
  const { wasted, units } = busy.tables.counts;
  expect(wasted).toBeLessThan(0.3 * units);
  await expectCountedOnce(busy);
  // It computes for 9 s even when nothing else runs.
}, 90_000);

it('a quiet relay has one bucket for each sum', async () => {
  const busy = await runBusyLedger({ closesPerSecond: 2, shards: 1, seconds: 20 });
  expect(busy.buckets).toEqual(['served']);
  expect(busy.tables.counts.conflicts).toBe(0);
  await expectCountedOnce(busy);
});
