import type { ChatUsage, PromptTokensDetails } from '../wire/chat-response.ts';

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

/**
 * The usage with cache counts that are whole, not negative, and together at most the prompt's total. The total
 * is what is charged, so it decides. Reads come before writes and writes before writes for an hour: what an
 * upstream counts twice is then never in the part with the higher price. The meter calls this for the usage of
 * every dialect, so client, bill and log line have the same counts.
 */
export function boundedUsage(usage: ChatUsage): ChatUsage {
  const details = usage.prompt_tokens_details;
  if (!details) return usage;
  const { cached_tokens, cache_write_tokens, cache_write_1h_tokens } = details;
  const cached = bounded(cached_tokens, usage.prompt_tokens);
  const written = bounded(cache_write_tokens, usage.prompt_tokens - cached);
  const writtenForHour = bounded(cache_write_1h_tokens, usage.prompt_tokens - cached - written);
  const prompt_tokens_details: PromptTokensDetails = {
    cached_tokens: cached,
    // Absent and zero differ for clients: upstreams that never report writes have no such count.
    ...(cache_write_tokens !== undefined && { cache_write_tokens: written }),
    ...(writtenForHour > 0 && { cache_write_1h_tokens: writtenForHour }),
  };
  return { ...usage, prompt_tokens_details };
}

/** NaN and negative counts become 0. */
const bounded = (count: number | undefined, most: number): number =>
  Math.max(0, Math.min(Math.round(count ?? 0) || 0, most));
