import { expect, it } from 'vitest';
import { imbalances } from '../../../shared/billing/parts/whole.ts';
import { HotAccount, type HotOptions } from './hot-account.ts';

const plan = {
  itemId: 'p',
  name: 'p',
  key: 'p@2026-11-01',
  staleKey: 'p@2026-09-01',
  limit: 1_000,
  resetsAtMs: 0,
};

/** 1,000 calls under way. Whole: `HOT_SECONDS=300 npm test -- test/simulation/hot`. */
const busy: HotOptions = {
  callsPerSecond: 100,
  secondsPerCall: 10,
  seconds: Number(process.env['HOT_SECONDS'] ?? 30),
  balance: 100_000_000n,
  hold: 500n,
  spent: (chance) => 0.05 + 0.4 * chance,
};

/** No charge is lost or doubled, nothing stays open, and no part has money from nowhere. */
function expectExact(hot: HotAccount): void {
  const whole = hot.memory.whole('acme');
  expect(whole).toMatchObject({ spent: hot.due, moved: 0n, open: new Map(), places: new Map() });
  expect((whole?.available ?? 0n) + (whole?.spent ?? 0n)).toBe(whole?.granted);
  const [first, ...others] = hot.memory.items.values();
  if (!first) throw new Error('no item');
  expect(imbalances([first, ...others])).toEqual([]);
}

const refusedCalls = (hot: HotAccount): number =>
  [...hot.refused.values()].reduce((sum, { calls }) => sum + calls, 0);

it('100 calls a second of 10 s are charged once each, from one part on, with a plan, a limited key and crashes', async () => {
  const hot = await new HotAccount({ ...busy, slots: [plan], maxConcurrency: 1_500, crash: 0.002 }).run();
  expectExact(hot);
  expect(hot.crashed).toBeGreaterThan(0);
  expect(refusedCalls(hot)).toBeLessThan(hot.calls / 1_000);
  expect(hot.parts).toBe(64);
  expect(hot.memory.whole('acme')?.plan.get(plan.key)).toBe(plan.limit);
  expect(hot.writeUnits().most).toBeLessThan(1_000);
  expect(Math.max(...hot.settlesMs)).toBeLessThan(5_000);
});

it('a balance that running calls hold refuses for that reason within 100 ms, and settles wait for nobody', async () => {
  const hot = await new HotAccount({ ...busy, balance: 480_000n, spent: () => 0.001 }).run();
  expectExact(hot);
  expect([...hot.refused.keys()]).toEqual(['balance_reserved']);
  expect(hot.refused.get('balance_reserved')?.longestMs).toBeLessThanOrEqual(100);
  expect(Math.max(...hot.settlesMs)).toBeLessThan(5_000);
});

it('11,600 calls a minute from 3,000 limited keys leave small items', async () => {
  const hot = await new HotAccount({
    ...busy,
    callsPerSecond: 193,
    secondsPerCall: 1,
    seconds: 60,
    keys: 3_000,
    maxConcurrency: 5,
  }).run();
  expectExact(hot);
  expect(refusedCalls(hot)).toBe(0);
  expect(hot.largestBytes).toBeLessThan(3_072);
  expect(hot.itemBytes).toBeLessThan(500);
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

it('an account that was busy and is quiet has one part again, with everything', async () => {
  const hot = new HotAccount({ ...busy, slots: [plan], seconds: 5 });
  await hot.run();
  expect(hot.parts).toBe(64);
  for (let calls = 0; calls < 60 && hot.parts > 1; calls += 1) await hot.callAlone();
  expect(hot.parts).toBe(1);
  expectExact(hot);
  expect(hot.memory.items.get('acme')).toMatchObject({ available: hot.memory.whole('acme')?.available });
});
