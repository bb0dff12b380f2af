import { expect, it } from 'vitest';
import { readersWorld } from './seeded-readers.ts';

/** To repeat one world: `STORED_SEED=230 npm test -- test/stored/seeded-readers.test.ts`. */
const onlySeed = process.env['STORED_SEED'];
const [first, count] = onlySeed === undefined ? [1, 40] : [Number(onlySeed), 1];

it('disconnected readers see every event once, whatever happens to the run and the store', async () => {
  const worlds = [];
  for (let seed = first; seed < first + count; seed += 1)
    worlds.push(
      await readersWorld(seed).catch((error: Error) => {
        throw new Error(`seed ${seed}: ${error.message}`, { cause: error });
      }),
    );
  if (onlySeed !== undefined) return;
  expect(new Set(worlds.map(({ ending }) => ending)).size).toBe(8);
  expect(worlds.reduce((sum, { cuts }) => sum + cuts, 0)).toBeGreaterThan(50);
  expect(worlds.reduce((sum, { faults }) => sum + faults, 0)).toBeGreaterThan(50);
});
