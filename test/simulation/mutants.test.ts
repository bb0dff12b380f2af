import { expect, it } from 'vitest';
import { mutants, type Mutant } from './mutant.ts';
import { simulate } from './simulate.ts';
import { Broken } from './watch.ts';

const seedsMax = 2000;

/** The first seed in whose world the broken reservations are found out, and how. */
async function foundOut(mutant: Mutant): Promise<string | undefined> {
  for (let seed = 1; seed <= seedsMax; seed += 1) {
    const found = await simulate(seed, mutant).catch((error: unknown) => error);
    if (found instanceof Broken) return found.message;
  }
  return undefined;
}

it.each(Object.entries(mutants))('%s is found out: %s', async (mutant) => {
  expect(await foundOut(mutant as Mutant)).toMatch(/^seed \d+: /);
});
