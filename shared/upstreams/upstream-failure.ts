/** How an attempt on a channel fails, as data. The relay decides what of it a client sees. */
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
  /** The secret store did not answer, so nothing is known about the secret. */
  | 'secret_store'
  /** One of the channel's time-outs passed. */
  | 'timeout'
  /** The time of the whole request passed. */
  | 'deadline'
  /** The stream broke off without a finish reason and without `[DONE]`. */
  | 'cut'
  /** The answer had no content, no finish reason and no error. */
  | 'empty'
  /** A web page instead of the API's answer, such as one of a proxy or a login form. */
  | 'html'
  /** Neither JSON nor server-sent events, or no readable content. */
  | 'junk'
  /** An error object instead of an answer, with status 200. */
  | 'error_in_answer'
  /** A line, an event or the whole answer is longer than its limit. */
  | 'too_large';

/**
 * A failed attempt that the caller did not cause; another channel may succeed. Holds no text of the upstream.
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

/** The upstream refused the request itself, so another channel would refuse it too. Texts are scrubbed. */
export interface CallerFault {
  kind: 'caller';
  status: number;
  message: string;
  param: string | null;
  code: string;
}
