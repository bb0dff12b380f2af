import { expect, it } from 'vitest';
import { runsOfSeeds } from './seeded-runs.ts';

/** To repeat one run: `STORED_SEED=230 npm test -- test/stored/seeded-runs.test.ts`. */
const onlySeed = process.env['STORED_SEED'];
const [first, count] = onlySeed === undefined ? [1, 60] : [Number(onlySeed), 1];

it('a background response is complete, charged once and invisible to other accounts, whatever fails', async () => {
  const runs = await runsOfSeeds(first, count);
  if (onlySeed !== undefined) return;
  const countOf = (what: (run: (typeof runs)[number]) => boolean): number => runs.filter(what).length;
  for (const status of ['completed', 'failed', 'cancelled', 'incomplete', undefined])
    expect(countOf((run) => run.status === status)).toBeGreaterThan(0);
  expect(countOf(({ runFell }) => runFell)).toBeGreaterThan(5);
  expect(countOf(({ frontFell }) => frontFell)).toBeGreaterThan(3);
  expect(countOf(({ cuts }) => cuts > 0)).toBeGreaterThan(20);
  expect(countOf(({ faults }) => faults > 0)).toBeGreaterThan(15);
}, 60_000);
