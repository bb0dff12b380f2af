import type { Hazards } from './environment.ts';
import type { Roughness } from './networked-store.ts';
import type { SeededRandom } from './seeded-random.ts';

/** The kind of a world: some are rough everywhere, some have a single kind of fault. */
export interface WorldKind {
  hazards: Hazards;
  roughness: Roughness;
  /** The duration of the longest call. */
  requestSeconds: number;
  /** One account gets busy for half a minute. */
  bursts: boolean;
  /** The maximum number of negative grants to it. */
  corrections: number;
  /** Grants are larger by this factor. */
  grantFactor: bigint;
  /** The share of calls that a run answers. */
  background: number;
  /** The share of calls whose account is metered; operators switch it while others run. */
  metered: number;
  /** Customers redeem codes, pay with a bonus, and get some payments refunded. */
  credits: boolean;
}

export function kindOf(random: SeededRandom, wanted: Partial<WorldKind> = {}): WorldKind {
  const some = (most: number): number => (random.chance(0.5) ? random.next() * most : 0);
  return {
    hazards: { crash: some(0.05), freeze: some(0.03), freezeMs: 900_000 },
    roughness: { busy: some(0.2), dropped: some(0.1), lost: some(0.2), late: some(0.1) },
    requestSeconds: random.chance(0.2) ? 400 : 150,
    bursts: random.chance(0.2),
    corrections: 2,
    grantFactor: 1n,
    background: random.chance(0.5) ? random.next() * 0.6 : 0,
    metered: 0,
    credits: false,
    ...wanted,
  };
}
