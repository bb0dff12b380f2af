import { simulate, type Tale } from './simulate.ts';
import type { WorldKind } from './world-kind.ts';

/** Runs the worlds of these seeds one after the other, and adds up their events. */
export async function simulateRange(
  firstSeed: number,
  count: number,
  kind?: Partial<WorldKind>,
): Promise<Tale> {
  const sums: Tale = {};
  for (let seed = firstSeed; seed < firstSeed + count; seed += 1) {
    const tale = await simulate(seed, undefined, kind);
    for (const [what, times] of Object.entries(tale)) sums[what] = (sums[what] ?? 0) + times;
  }
  return sums;
}
