import { expect, it } from 'vitest';
import { runBusyKey, runHeldBalance } from '../simulation/hot/hot-scenarios.ts';

it('100 calls a second of 10 s of a key with every limit, for 5 minutes: less than 0.1 % refused', async () => {
  const hot = await runBusyKey(300);
  const units = { account: hot.writeUnits(), counters: hot.writeUnits(hot.counters.writes) };
  console.log(`${hot.calls} calls, ${hot.crashed} crashed; write units a second:`, units);
  expect(units.account.mean).toBeLessThan(900);
  expect(units.account.most).toBeLessThan(1_000);
  expect(units.counters.most).toBeLessThan(1_000);
});

it('100 calls a second of 10 s, for 5 minutes, on a balance that running calls hold: refusals say so within 100 ms', async () => {
  const hot = await runHeldBalance(300);
  expect(Math.max(...hot.settlesMs)).toBeLessThan(5_000);
});
