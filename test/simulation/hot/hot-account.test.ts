import { expect, it } from 'vitest';
import { HotAccount } from './hot-account.ts';
import {
  busy,
  expectExact,
  plan,
  refusedCalls,
  runBusyKey,
  runHeldBalance,
  runMetered,
} from './hot-scenarios.ts';

it('100 calls/s for 10 s of a key with every limit, starting from one part, are charged once each despite crashes', async () => {
  const hot = await runBusyKey(10);
  // Write units of the partition, and of the counters of one key.
  expect(hot.writeUnits().most).toBeLessThan(1_000);
  expect(hot.writeUnits(hot.counters.writes).most).toBeLessThan(1_000);
});

it('a balance reserved by running calls rejects others with that reason within 100 ms, and settles never wait', async () => {
  const hot = await runHeldBalance(30);
  expect(Math.max(...hot.settlesMs)).toBeLessThan(5_000);
});

it('11,600 calls a minute from 3,000 limited keys leave small items', async () => {
  const hot = await new HotAccount({
    ...busy,
    callsPerSecond: 193,
    secondsPerCall: 1,
    seconds: 20,
    keys: 3_000,
    maxConcurrency: 5,
  }).run();
  expectExact(hot);
  expect(refusedCalls(hot)).toBe(0);
  // An item grows with the running calls in its part: twelve calls of limited keys. It keeps nothing of the 3,000 keys.
  expect(hot.largestBytes).toBeLessThan(2_304);
  expect(hot.itemBytes).toBeLessThan(256);
});

it('one call a second costs two writes of one unit each, and no read', async () => {
  const hot = await new HotAccount({
    ...busy,
    callsPerSecond: 1,
    secondsPerCall: 1,
    seconds: 60,
    slots: [plan],
  }).run();
  expectExact(hot);
  const units = [...hot.partition.writes.used.values()].reduce((sum, each) => sum + each, 0);
  expect(units).toBe(2 * hot.calls);
  expect(hot.partition.reads.used.size).toBe(0);
  expect(hot.memory.calls.filter((call) => call !== 'reserve' && call !== 'close')).toEqual([]);
});

it('an account is joined to one part with everything after its busy time', async () => {
  const hot = new HotAccount({ ...busy, slots: [plan], seconds: 5 });
  await hot.run();
  expect(hot.parts).toBe(64);
  for (let calls = 0; calls < 60 && hot.parts > 1; calls += 1) await hot.callAlone();
  expect(hot.parts).toBe(1);
  expectExact(hot);
  expect(hot.memory.items.get('acme')).toMatchObject({ available: hot.memory.whole('acme')?.available });
});

it('1,000 calls/s for 10 s of a metered account use no balance, are charged once each, and write small items', async () => {
  const hot = await runMetered(3);
  expect(hot.memory.whole('acme')).toMatchObject({ available: 0n, granted: 0n, metered: hot.due });
  expect(hot.partition.reads.used.size).toBe(0);
  expect(hot.partition.transactions).toBe(0);
});

it('the budget of a key limits the calls of a metered account', async () => {
  const options = { ...busy, balance: 0n, metered: true, partitions: 4, budget: 2_000n };
  const hot = await new HotAccount({ ...options, callsPerSecond: 20, secondsPerCall: 1, seconds: 10 }).run();
  expectExact(hot);
  expect(refusedCalls(hot)).toBeGreaterThan(0);
  expect([...hot.counters.inner.budgets.values()]).toEqual([{ used: hot.due, running: 0 }]);
  expect(hot.due).toBeLessThanOrEqual(2_000n);
  expect(hot.due).toBeGreaterThan(1_000n);
});
