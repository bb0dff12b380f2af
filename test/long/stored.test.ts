import { expect, it } from 'vitest';
import { runsOfSeeds } from '../stored/seeded-runs.ts';

/** Others: `STORED_SEED=100000 npm run test:long -- test/long/stored.test.ts`. */
const first = Number(process.env['STORED_SEED'] ?? 1_000);

it('500 background responses are whole, charged once and seen by nobody else, whatever fails', async () => {
  const runs = await runsOfSeeds(first, 500);
  expect(runs.filter(({ runFell }) => runFell).length).toBeGreaterThan(80);
}, 600_000);
