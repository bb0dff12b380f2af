import { UpstreamError, type UpstreamFault } from '../convert/upstream-error.ts';
import { TransportError } from './ports.ts';
import { refuse, type Refusal } from './refusal.ts';

export type UpstreamFailureKind =
  | UpstreamFault
  | 'connect'
  | 'reset'
  | 'status'
  | 'secret'
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

/** Kinds after which the upstream cannot have charged anything: it was not reached, or said no. */
const chargedNothing = new Set<UpstreamFailureKind>(['connect', 'secret', 'status']);

/** What the client is told when no channel could serve. SDKs retry unless told not to. */
export function refusalOfFailure(failure: UpstreamFailure): Refusal {
  const reason = failure.reason;
  const headers: Record<string, string> = chargedNothing.has(failure.kind)
    ? {}
    : { 'x-should-retry': 'false' };
  if (failure.status === 429) {
    const seconds = Math.max(1, Math.ceil(failure.retryAfterSeconds ?? 5));
    return refuse(
      'rate_limit_exceeded',
      `The upstream of this model is limiting its rate. Please try again in ${seconds}s.`,
      { reason, headers: { 'retry-after': String(seconds) } },
    );
  }
  if (failure.kind === 'timeout' || failure.kind === 'deadline')
    return refuse('upstream_timeout', 'The upstream of this model did not answer in time.', {
      reason,
      headers,
    });
  return refuse(
    'upstream_unavailable',
    'The upstream of this model failed to answer. Try again, or another model.',
    {
      reason,
      headers,
    },
  );
}
