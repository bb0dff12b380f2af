/** What of a day's calls prices are applied to, from its sums. Pure. */
import type { TokenCounts } from '../../billing/price.ts';
import type { DailyFigures } from '../../billing/daily/daily-figures.ts';

export interface Usage {
  calls: number;
  tokens: TokenCounts;
}

const less = (all = 0, unpaid = 0): number => Math.max(0, all - unpaid);

/** Without calls on plans, of official mode, and those that were released or expired. */
export function paidUsage({ counts }: DailyFigures): Usage {
  return {
    calls: less(counts.calls, counts.unpaid_calls),
    tokens: {
      prompt_tokens: less(counts.prompt_tokens, counts.unpaid_prompt_tokens),
      completion_tokens: less(counts.completion_tokens, counts.unpaid_completion_tokens),
      prompt_tokens_details: {
        cached_tokens: less(counts.cached_tokens, counts.unpaid_cached_tokens),
        cache_write_tokens: less(counts.cache_write_tokens, counts.unpaid_cache_write_tokens),
        cache_write_1h_tokens: less(counts.cache_write_1h_tokens, counts.unpaid_cache_write_1h_tokens),
      },
    },
  };
}

/** Of all calls: the operator pays for those too that nobody pays for. */
export const allUsage = ({ counts, amounts }: DailyFigures): Usage =>
  paidUsage({
    counts: Object.fromEntries(Object.entries(counts).filter(([name]) => !name.startsWith('unpaid_'))),
    amounts,
  });

/** Calls that ended without an answer to pay for. An expired one of them was charged its input, which no count says. */
export const unfinishedCalls = ({ counts }: DailyFigures): number =>
  Math.max(0, (counts.unpaid_calls ?? 0) - (counts.plan_calls ?? 0) - (counts.official_calls ?? 0));
