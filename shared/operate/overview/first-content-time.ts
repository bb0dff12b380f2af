/** Reads the buckets of the time to first content: within which time a share of the calls began to answer. */
import type { DailyFigures } from '../../billing/daily/daily-figures.ts';
import { firstContentBuckets } from '../../billing/daily/first-content.ts';

/** The last one has none: `Infinity`. */
const boundsMs = firstContentBuckets.map((name) => {
  const bound = Number(name.split('_').at(-1));
  return Number.isNaN(bound) ? Infinity : bound;
});

/**
 * The bound of the bucket in which the share is reached. Undefined: no call had content.
 * @param share such as 0.95
 */
export function contentWithin({ counts }: DailyFigures, share: number): number | undefined {
  const values = firstContentBuckets.map((name) => counts[name] ?? 0);
  const wanted = share * values.reduce((sum, value) => sum + value, 0);
  if (wanted === 0) return undefined;
  let seen = 0;
  return boundsMs[values.findIndex((value) => (seen += value) >= wanted)];
}

/** For plots: the bucket without an upper bound is shown as twice the bound before it. */
export function firstContentWithin(figures: DailyFigures, share: number): number | undefined {
  const bound = contentWithin(figures, share);
  return bound === Infinity ? 2 * (boundsMs.at(-2) ?? 0) : bound;
}
