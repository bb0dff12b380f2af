import { expect, it } from 'vitest';
import { refusedCalls, runBusyKey, runHeldBalance } from '../simulation/hot/hot-scenarios.ts';

it('100 calls a second of 10 s of a key with every limit, for 5 minutes: less than 0.1 % refused', async () => {
  const hot = await runBusyKey(300);
  const units = { account: hot.writeUnits(), counters: hot.writeUnits(hot.counters.writes) };
  console.log(
    `${hot.calls} calls, ${refusedCalls(hot)} refused, ${hot.crashed} crashed, ${hot.partition.writes.throttled} writes throttled; write units a second:`,
    units,
  );
  expect(units.account.mean).toBeLessThan(900);
  // A second may use what the one before it left.
  expect(hot.partition.writes.throttled).toBeLessThan(hot.calls / 100);
  expect(hot.counters.writes.throttled).toBe(0);
});

it('100 calls a second of 10 s, for 5 minutes, on a balance that running calls hold: refusals say so within 100 ms', async () => {
  const hot = await runHeldBalance(300);
  expect(Math.max(...hot.settlesMs)).toBeLessThan(5_000);
});
