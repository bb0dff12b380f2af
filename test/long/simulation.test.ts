import { expect, it } from 'vitest';
import { simulateRange } from '../simulation/simulate-range.ts';

/** A batch takes 25 s on an idle machine, and 14 minutes on a very busy one. Other worlds: `SIMULATION_SEED=1000000 npm run test:long`. */
const first = Number(process.env['SIMULATION_SEED'] ?? 1_000);
const [total, batch] = [20_000, 1_000];
const batches = Array.from({ length: total / batch }, (_, index) => first + index * batch);

it.each(batches)(
  `no money is lost or created in the ${batch} worlds from seed %i on`,
  async (seed) => {
    const { settled } = await simulateRange(seed, batch);
    expect(settled).toBeGreaterThan(batch);
  },
  1_800_000,
);
