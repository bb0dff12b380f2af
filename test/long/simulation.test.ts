import { expect, it } from 'vitest';
import { simulateRange } from '../simulation/simulate-range.ts';

/** Other worlds: `SIMULATION_SEED=1000000 npm run test:long`. */
const first = Number(process.env['SIMULATION_SEED'] ?? 1_000);
const [total, batch] = [20_000, 2_000];
const batches = Array.from({ length: total / batch }, (_, index) => first + index * batch);

it.each(batches)(`no money is lost or made in the ${batch} worlds from seed %i on`, async (seed) => {
  const { settled } = await simulateRange(seed, batch);
  expect(settled).toBeGreaterThan(batch);
});
