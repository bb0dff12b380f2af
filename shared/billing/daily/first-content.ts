/** The buckets of the time to first content: each counts the calls up to its bound and above the one before. */
const boundsMs = [250, 500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000] as const;

export type FirstContentBucket = `first_content_${(typeof boundsMs)[number] | 'more'}`;

export const firstContentBuckets: readonly FirstContentBucket[] = [
  ...boundsMs.map((bound): FirstContentBucket => `first_content_${bound}`),
  'first_content_more',
];

export const firstContentBucket = (milliseconds: number): FirstContentBucket =>
  `first_content_${boundsMs.find((bound) => milliseconds <= bound) ?? 'more'}`;
