/**
 * Summarizes a channel's attempts: the only arithmetic of failures, times and speed, for lists, pages, reports and CSV. A failed attempt
 * counts against its channel, even if another channel answered the call.
 */
import { failureCauses, type FailureCause } from '../../billing/attempts.ts';
import type { DailyFigures } from '../../billing/daily-figures.ts';
import type { ChannelMark } from '../../relay/ports/alerts.ts';
import { findQuantile } from '../../billing/time-sketch.ts';

/** `causes`: the most frequent first. `p50Ms`, `p95Ms`: from the start of an attempt to its first content. */
export type AttemptSummary = ReturnType<typeof summarizeAttempts>;

/** Sums of versions that did not count attempts contain only calls. Each call counts as one attempt. */
export function summarizeAttempts({ counts }: DailyFigures) {
  const { attempts, timed_ms: timedMs = 0, timed_tokens: tokens = 0 } = counts;
  const isKnown = attempts !== undefined;
  const causes = failureCauses.flatMap((cause) => {
    const count = counts[`failed_${cause}`] ?? 0;
    return count > 0 ? [{ cause, count }] : [];
  });
  return {
    attempts: (isKnown ? attempts : counts.calls) ?? 0,
    failed: (isKnown ? counts.failed_attempts : counts.failures) ?? 0,
    causes: causes.toSorted((a, b) => b.count - a.count),
    p50Ms: findQuantile(counts, 0.5),
    p95Ms: findQuantile(counts, 0.95),
    tokensPerSecond: timedMs === 0 ? undefined : (1000 * tokens) / timedMs,
  };
}

const causeWords: Record<FailureCause, string> = {
  timeout: 'no content or no end in time',
  rate_limit: 'rate limited',
  credentials: 'key rejected or unpaid',
  server: 'server error',
  connection: 'no connection',
  answer: 'broken answer',
  rejected: 'request rejected',
  other: 'other cause',
};

export const describeCauses = ({ causes }: Pick<AttemptSummary, 'causes'>): string =>
  causes.map(({ cause, count }) => `${causeWords[cause]} ${count}`).join(', ');

/** `gpt-4o slower: 6.2s to first content, usually 0.61s`. */
export function describeMark({ mark, model, now, usual }: ChannelMark): string {
  const show = markUnits[mark];
  const of = model === undefined ? '' : `${model} `;
  return `${of}${mark}: ${show(now)}, usually ${show(usual).replace(/ .*/, '')}`;
}

const markUnits: Record<ChannelMark['mark'], (value: number) => string> = {
  failing: (share) => `${(100 * share).toFixed(1)}% of attempts fail`,
  slower: (ms) => `${(ms / 1000).toPrecision(2)}s to first content`,
  costlier: (yuan) => `¥${yuan.toPrecision(3)} a million tokens`,
};
