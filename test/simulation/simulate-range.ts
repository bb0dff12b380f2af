import { simulate, type Tale } from './simulate.ts';

/** Runs the worlds of these seeds, one after the other, and adds up what happened in them. */
export async function simulateRange(firstSeed: number, count: number): Promise<Tale> {
  const sums: Tale = {};
  for (let seed = firstSeed; seed < firstSeed + count; seed += 1) {
    const tale = await simulate(seed);
    for (const [what, times] of Object.entries(tale)) sums[what] = (sums[what] ?? 0) + times;
  }
  return sums;
}
