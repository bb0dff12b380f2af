import { expect, it } from 'vitest';
import { mutants, type Mutant } from './mutant.ts';
import { simulate } from './simulate.ts';
import { Broken } from './watch.ts';

const seedsMax = 300;

/** The first seed whose world detects the broken product, and the detected fault. */
async function foundOut(mutant: Mutant): Promise<string | undefined> {
  for (let seed = 1; seed <= seedsMax; seed += 1) {
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
  for (const kind of kinds) for (let seed = 1; seed <= 10; seed += 1) await simulate(seed, undefined, kind);
});
