import { expect, it } from 'vitest';
import { SnapshotSpread } from '../simulation/hot/snapshot-spread.ts';

it('10,000 environments that poll, and answer once a second, use an edit of a 100 KB configuration within 10 s', async () => {
  const many = { environments: 10_000, requestsPerSecond: 1, snapshotBytes: 100_000 };
  const { staleMs, live, faults } = await new SnapshotSpread(many).run(20_000);
  console.log(`the last answer by the old one after ${staleMs.at(-1)} ms`);
  expect(live).toBe(many.environments);
  expect(faults).toBe(0);
  // Compiling takes the rest.
  expect(staleMs.at(-1)).toBeLessThan(9_000);
});
