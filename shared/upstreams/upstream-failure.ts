import { UpstreamError, type UpstreamFault } from './upstream-error.ts';
import { TransportError } from './exchange.ts';
import { refuse, type Refusal } from '../relay/http/refusal.ts';

export type UpstreamFailureKind =
  | UpstreamFault
  | 'connect'
  | 'reset'
  | 'status'
  /** The channel's secret is missing or refused. */
  | 'secret'
  /** The store of secrets did not answer: nothing is known of the secret. */
  | 'secret_store'
  /** Too slow: a channel's time-out. */
  | 'timeout'
  /** The whole request ran out of time. */
  | 'deadline';

/** An attempt on a channel failed in a way that is not the caller's doing; another channel may do better. */
export class UpstreamFailure extends Error {
  override readonly name = 'UpstreamFailure';
  readonly kind: UpstreamFailureKind;
  readonly status: number | undefined;
  readonly retryAfterSeconds: number | undefined;

  constructor(kind: UpstreamFailureKind, status?: number, retryAfterSeconds?: number) {
    super(`upstream failed: ${kind}${status === undefined ? '' : ` ${status}`}`);
    this.kind = kind;
    this.status = status;
    this.retryAfterSeconds = retryAfterSeconds;
  }

  static from(error: unknown): UpstreamFailure | undefined {
    if (error instanceof UpstreamFailure) return error;
    if (error instanceof UpstreamError) return new UpstreamFailure(error.fault);
    if (error instanceof TransportError)
      return new UpstreamFailure(error.kind === 'aborted' ? 'timeout' : error.kind);
    return undefined;
  }

  /** Words for the log. */
  get reason(): string {
    return `upstream_${this.kind}${this.status === undefined ? '' : `_${this.status}`}`;
  }
}

const defaultRetrySeconds = 5;

/** Kinds after which the upstream cannot have charged anything: it was not reached, or said no. */
const chargedNothing = new Set<UpstreamFailureKind>(['connect', 'secret', 'secret_store', 'status']);

/**
 * What the client is told when no channel could serve it: a rate limit when all of them said so, else what the last
 * other one did. SDKs retry unless told not to, which they are when an upstream may have charged. Never empty.
 */
export function refusalOfFailures(failures: readonly UpstreamFailure[]): Refusal {
  const reason = failures.map((failure) => failure.reason).join(' ');
  const headers: Record<string, string> = {};
  if (failures.some(({ kind }) => !chargedNothing.has(kind))) headers['x-should-retry'] = 'false';
  const failure = failures.findLast(({ status }) => status !== 429);
  if (!failure) {
    const seconds = Math.min(
      ...failures.map(({ retryAfterSeconds }) => retryAfterSeconds ?? defaultRetrySeconds),
    );
    return rateRefusal(seconds, reason);
  }
  if (failure.kind === 'timeout' || failure.kind === 'deadline')
    return refuse('upstream_timeout', 'The upstream of this model did not answer in time.', {
      reason,
      headers,
    });
  const words = 'The upstream of this model failed to answer. Try again, or another model.';
  return refuse('upstream_unavailable', words, { reason, headers });
}

/** All channels of the model are cooling. Times in epoch milliseconds. */
export function coolingRefusal(soonestMs: number | undefined, nowMs: number): Refusal {
  const seconds = soonestMs === undefined ? defaultRetrySeconds : (soonestMs - nowMs) / 1000;
  return rateRefusal(seconds, 'all_channels_cooling');
}

/** Coding agents read the seconds out of these words. */
function rateRefusal(seconds: number, reason: string): Refusal {
  const whole = Math.max(1, Math.ceil(seconds));
  const words = `The upstream of this model is limiting its rate. Please try again in ${whole}s.`;
  return refuse('rate_limit_exceeded', words, { reason, headers: { 'retry-after': String(whole) } });
}
