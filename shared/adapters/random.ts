import type { Random } from '../relay/ports.ts';

/** For jitter and weights. */
export const systemRandom: Random = { next: () => Math.random() };
