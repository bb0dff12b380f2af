/** How an attempt on a channel ends without an answer, as data. The relay decides what a client is shown of it. */
import { TransportError } from './exchange.ts';

export type UpstreamFailureKind =
  /** No connection: nothing was sent. */
  | 'connect'
  /** The connection broke. */
  | 'reset'
  /** A status that is not a 2xx. */
  | 'status'
  /** The channel's secret is missing or refused. */
  | 'secret'
  /** The store of secrets did not answer: nothing is known of the secret. */
  | 'secret_store'
  /** Too slow: a channel's time-out. */
  | 'timeout'
  /** The whole request ran out of time. */
  | 'deadline'
  /** The stream broke off without a finish reason and without `[DONE]`. */
  | 'cut'
  /** The answer had no content, no finish reason and no error. */
  | 'empty'
  /** A web page: a proxy or a login form stands where the API should be. */
  | 'html'
  /** Neither JSON nor server-sent events, or nothing in it could be read. */
  | 'junk'
  /** An error object where the answer should be, under a status 200. */
  | 'error_in_answer'
  /** A line, an event or the whole answer grew over its bound. */
  | 'too_large';

/**
 * An attempt failed in a way that is not the caller's doing; another channel may do better. Nothing of what the upstream
 * wrote is kept.
 */
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
    if (error instanceof TransportError)
      return new UpstreamFailure(error.kind === 'aborted' ? 'timeout' : error.kind);
    return undefined;
  }

  /** For the log. */
  get reason(): string {
    return `upstream_${this.kind}${this.status === undefined ? '' : `_${this.status}`}`;
  }
}

/** The upstream refused the caller's request itself: another channel would refuse it too. Texts are scrubbed. */
export interface CallerFault {
  kind: 'caller';
  status: number;
  message: string;
  param: string | null;
  code: string;
}
