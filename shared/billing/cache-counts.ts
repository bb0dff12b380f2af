/**
 * Prompt tokens that the upstream read from its prompt cache, and wrote to it for the usual time or for an
 * hour. Parts of the prompt's total, named as in the ledger. Zero is absent: most calls have none, and rows
 * stay short.
 */
export interface CacheCounts {
  cached_tokens?: number | undefined;
  cache_write_tokens?: number | undefined;
  cache_write_1h_tokens?: number | undefined;
}

const names = ['cached_tokens', 'cache_write_tokens', 'cache_write_1h_tokens'] as const;

/** The counts above zero; undefined: the call used no cache, or nobody knows. */
export function cacheCounts(counts: CacheCounts = {}): CacheCounts | undefined {
  const some = names.filter((name) => (counts[name] ?? 0) > 0);
  return some.length > 0 ? Object.fromEntries(some.map((name) => [name, counts[name]])) : undefined;
}
