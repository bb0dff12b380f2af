/** Describes which prompt tokens the upstream's cache held. */
import type { CacheCounts } from '../../billing/cache-counts.ts';

/** Empty: none. */
export function cacheWords(counts: CacheCounts): string {
  const {
    cached_tokens: read = 0,
    cache_write_tokens: written = 0,
    cache_write_1h_tokens: hour = 0,
  } = counts;
  const parts = [
    read > 0 ? `${read} cached` : '',
    written > 0 ? `${written} written to the cache` : '',
    hour > 0 ? `${hour} written to it for an hour` : '',
  ];
  return parts.filter((part) => part !== '').join(', ');
}
