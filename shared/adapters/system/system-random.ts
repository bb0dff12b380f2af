import type { Random } from '../../relay/ports/clock.ts';

/** For jitter and weights. */
export const systemRandom: Random = { next: () => Math.random() };
