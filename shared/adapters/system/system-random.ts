/** Random numbers for jitter and weights. Must never be used for secrets. */
import type { Random } from '../../relay/ports/ids.ts';

export const systemRandom: Random = { next: () => Math.random() };
