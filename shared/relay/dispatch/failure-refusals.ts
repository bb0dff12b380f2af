/** Converts upstream failures to the refusal that a client gets when no candidate answered. It says the true cause. */
import type { CallerFault, UpstreamFailure, UpstreamFailureKind } from '../../upstreams/upstream-failure.ts';
import { loopHeader } from '../../wire/hop-headers.ts';
import { refuse, Refusal } from '../http/refusal.ts';
import type { Standing } from '../health/standing.ts';

const defaultRetrySeconds = 5;
const timeUps = new Set<UpstreamFailureKind>(['first_content_timeout', 'timeout', 'deadline']);

/**
 * Kinds of failure for which the upstream cannot have charged: it was not reached, or refused the request.
 */
const chargedNothing = new Set<UpstreamFailureKind>(['connect', 'secret', 'secret_store', 'status', 'loop']);

const isLimit = ({ kind, status }: UpstreamFailure): boolean => kind === 'status' && status === 429;

/** Our account at the upstream: a repeat within minutes cannot help. */
const isOfAccount = ({ kind, status }: UpstreamFailure): boolean =>
  kind === 'secret' || (kind === 'status' && (status === 401 || status === 402));

export interface FailedDispatch {
  failures: readonly UpstreamFailure[];
  /** One of the failed answers had content. */
  hadContent: boolean;
  /** One that was not asked, because its upstream said so. */
  blocked: Standing | undefined;
  nowMs: number;
}

/** The refusal when no candidate is left. */
export function refusalOfDispatch({ failures, hadContent, blocked, nowMs }: FailedDispatch): Refusal {
  const blockedSeconds = blocked && (blocked.untilMs - nowMs) / 1000;
  if (failures.length > 0) return refusalOfFailures(failures, { hadContent, blockedSeconds });
  return rateRefusal(blockedSeconds ?? defaultRetrySeconds, 'all_channels_cooling');
}

/**
 * A rate limit if one ends by itself and nothing but our account at other upstreams failed beside it, our account if
 * every failure was of it, otherwise the last other failure. Sends `x-should-retry: false` when an upstream may have charged, because SDKs retry by default.
 * `failures` is never empty. `hadContent`: the failed answer had content, so its upstream has charged.
 * `blockedSeconds`: when a candidate that was not asked may be asked again.
 */
export function refusalOfFailures(
  failures: readonly UpstreamFailure[],
  {
    hadContent = false,
    blockedSeconds = Infinity,
  }: { hadContent?: boolean; blockedSeconds?: number | undefined } = {},
): Refusal {
  const causes = failures.map((failure) => failure.reason).join(' ');
  const mayHaveCharged = hadContent || failures.some(({ kind }) => !chargedNothing.has(kind));
  const headers: Record<string, string> = mayHaveCharged ? { 'x-should-retry': 'false' } : {};
  const limits = failures.filter(isLimit);
  const others = failures.filter((failure) => !isLimit(failure) && failure.kind !== 'secret_store');
  // No upstream failed: the relay could not read what it needs to ask one.
  if (others.length === 0 && failures.some(({ kind }) => kind === 'secret_store')) {
    const words = 'The relay cannot read its secrets right now. Nothing was charged; try again.';
    return refuse('unavailable', words, { reason: causes, headers: { 'retry-after': '2', ...headers } });
  }
  if (others.every(isOfAccount) && (limits.length > 0 || blockedSeconds < Infinity)) {
    const stated = limits.map(({ statedRetrySeconds }) => statedRetrySeconds ?? defaultRetrySeconds);
    return rateRefusal(Math.min(...stated, blockedSeconds), causes, headers);
  }
  if (failures.every(isOfAccount)) {
    const words =
      "The relay's own account at the upstream of this model does not work at the moment; your key and your balance " +
      'are not the cause. Tell the operator, or use another model.';
    return refuse('upstream_unavailable', words, { reason: `upstream_account ${causes}`, headers });
  }
  const failure = others.findLast((one) => !isOfAccount(one));
  if (failure && timeUps.has(failure.kind))
    return refuse('upstream_timeout', 'The upstream of this model did not answer in time.', {
      reason: causes,
      headers,
    });
  if (failure?.kind === 'loop')
    return refuse(
      'relay_loop',
      'A channel of this model leads back to the relay. Nothing was charged. Only the operator can correct it.',
      { reason: causes, headers: { ...headers, [loopHeader]: '1', 'x-should-retry': 'false' } },
    );
  const words = 'The upstream of this model failed to answer. Try again, or another model.';
  return refuse('upstream_unavailable', words, { reason: causes, headers });
}

/** The upstream's own refusal, with its status. */
export function refusalOfCaller({ status, message, param, code }: CallerFault): Refusal {
  const error = { message, type: 'invalid_request_error', param, code } as const;
  return new Refusal(status, error, { reason: `upstream_refused_${status}` });
}

/** Coding agents parse the seconds from this message. */
function rateRefusal(seconds: number, reason: string, more: Record<string, string> = {}): Refusal {
  const whole = Math.max(1, Math.ceil(seconds));
  const words = `The upstream of this model is limiting its rate. Please try again in ${whole}s.`;
  const headers = { 'retry-after': String(whole), ...more };
  return refuse('rate_limit_exceeded', words, { reason, headers });
}
