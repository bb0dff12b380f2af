/** Converts upstream failures to the refusal that a client gets when no channel answered. */
import type { CallerFault, UpstreamFailure, UpstreamFailureKind } from '../../upstreams/upstream-failure.ts';
import { refuse, Refusal } from '../http/refusal.ts';

const defaultRetrySeconds = 5;
const timeUps = new Set<UpstreamFailureKind>(['first_content_timeout', 'timeout', 'deadline']);

/**
 * Kinds of failure for which the upstream cannot have charged: it was not reached, or refused the request.
 */
const chargedNothing = new Set<UpstreamFailureKind>(['connect', 'secret', 'secret_store', 'status']);

/**
 * `hadContent`: the failed answer had content, so its upstream has charged.
 * A rate limit if every failure was one, otherwise the last other failure. Sends `x-should-retry: false` when
 * an upstream may have charged, because SDKs retry by default. `failures` is never empty.
 */
export function refusalOfFailures(failures: readonly UpstreamFailure[], hadContent = false): Refusal {
  const reason = failures.map((failure) => failure.reason).join(' ');
  const headers: Record<string, string> = {};
  if (hadContent || failures.some(({ kind }) => !chargedNothing.has(kind)))
    headers['x-should-retry'] = 'false';
  const failure = failures.findLast(({ kind, status }) => status !== 429 && kind !== 'secret_store');
  // No upstream failed: the relay could not read what it needs to ask one.
  if (!failure && failures.some(({ kind }) => kind === 'secret_store'))
    return refuse(
      'unavailable',
      'The relay cannot read its secrets right now. Nothing was charged; try again.',
      {
        reason,
        headers: { 'retry-after': '2', ...headers },
      },
    );
  if (!failure) {
    const seconds = Math.min(
      ...failures.map(({ statedRetrySeconds }) => statedRetrySeconds ?? defaultRetrySeconds),
    );
    return rateRefusal(seconds, reason, headers);
  }
  if (timeUps.has(failure.kind))
    return refuse('upstream_timeout', 'The upstream of this model did not answer in time.', {
      reason,
      headers,
    });
  const words = 'The upstream of this model failed to answer. Try again, or another model.';
  return refuse('upstream_unavailable', words, { reason, headers });
}

/** The upstream's own refusal, with its status. */
export function refusalOfCaller({ status, message, param, code }: CallerFault): Refusal {
  const error = { message, type: 'invalid_request_error', param, code } as const;
  return new Refusal(status, error, { reason: `upstream_refused_${status}` });
}

/** The refusal when all channels of the model are in cooldown. Times in epoch milliseconds. */
export function cooldownRefusal(soonestMs: number | undefined, nowMs: number): Refusal {
  const seconds = soonestMs === undefined ? defaultRetrySeconds : (soonestMs - nowMs) / 1000;
  return rateRefusal(seconds, 'all_channels_cooling');
}

/** Coding agents parse the seconds from this message. */
function rateRefusal(seconds: number, reason: string, more: Record<string, string> = {}): Refusal {
  const whole = Math.max(1, Math.ceil(seconds));
  const words = `The upstream of this model is limiting its rate. Please try again in ${whole}s.`;
  const headers = { 'retry-after': String(whole), ...more };
  return refuse('rate_limit_exceeded', words, { reason, headers });
}
