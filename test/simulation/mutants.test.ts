import { expect, it } from 'vitest';
import { mutants, type Mutant } from './mutant.ts';
import { simulate } from './simulate.ts';
import { Broken } from './watch.ts';

const seedsMax = 300;

/** Runs up to 300 worlds, and returns the fault that the first of them detects in the broken product. */
async function foundOut(mutant: Mutant): Promise<string | undefined> {
  const { firstSeed = 1 } = mutants[mutant];
  for (let worlds = 0; worlds < seedsMax; worlds += 1) {
    const seed = ((firstSeed - 1 + worlds) % seedsMax) + 1;
    const found = await simulate(seed, mutant).catch((error: unknown) => error);
    if (found instanceof Broken) return found.message;
  }
  return undefined;
}

it.each(Object.entries(mutants))('%s is detected: $what', async (mutant, { noticed }) => {
  const message = await foundOut(mutant as Mutant);
  expect(message).toMatch(/^seed \d+: /);
  expect(message).toMatch(noticed);
});

it('worlds designed for a mutant are sound without it', async () => {
  const kinds = new Set(Object.values(mutants).flatMap(({ kind }) => kind ?? []));
  expect(kinds.size).toBeGreaterThan(5);
  for (const kind of kinds) for (let seed = 1; seed <= 3; seed += 1) await simulate(seed, undefined, kind);
});
