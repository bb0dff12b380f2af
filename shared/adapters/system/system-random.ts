import type { Random } from '../../relay/ports/ids.ts';

/** For jitter and weights. */
export const systemRandom: Random = { next: () => Math.random() };
