/** An HTTP request to an upstream, its reply before any dialect reads it, and how the exchange can fail. */
import type { JsonRecord } from '../wire/json.ts';

export interface AwsScope {
  service: string;
  region: string;
}

export interface UpstreamRequest {
  method?: 'GET' | 'POST';
  url: string;
  headers: Record<string, string>;
  body: string;
  connectTimeoutMs: number;
  /** The transport signs the request with the function's own role. */
  awsScope?: AwsScope;
}

export interface UpstreamReply {
  status: number;
  /** Names in lower case. */
  headers: Record<string, string | undefined>;
  /** One item per network read. Errors reject the read; returning early closes the connection. */
  body: AsyncIterable<Uint8Array>;
}

/**
 * Why there was no connection. `address`: the relay may not connect there. `timeout`: no reply in time. `tls_...`: the
 * certificate has expired, is not trusted, or is for another host.
 */
export type ConnectFault =
  | 'refused'
  | 'unreachable'
  | 'dns'
  | 'timeout'
  | 'tls'
  | 'tls_expired'
  | 'tls_untrusted'
  | 'tls_host'
  | 'address';

/** A failed exchange. `kind` is its stage; only with `connect` was nothing sent. */
export class TransportError extends Error {
  readonly kind: 'connect' | 'reset' | 'aborted' | 'encoding';
  /** The system's error code, such as ECONNREFUSED. */
  readonly code?: string;
  /** Only with kind `connect`. */
  readonly fault?: ConnectFault | undefined;
  constructor(
    kind: TransportError['kind'],
    message: string,
    facts: Pick<TransportError, 'code' | 'fault'> = {},
  ) {
    super(message);
    this.name = 'TransportError';
    this.kind = kind;
    Object.assign(this, facts);
  }
}

// Failures of an attempt, as data. The relay decides what a client sees.

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
  /** The channel leads back to this relay, or to one that says the same of its own channel. */
  | 'loop'
  /** No content in time. One caller's long prompt can cause it, so it says nothing about the channel. */
  | 'first_content_timeout'
  /** Another of the channel's time-outs passed. */
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
  /** Unrequested compression that cannot be decoded. */
  | 'encoding'
  /** An error object instead of an answer, with status 200. */
  | 'error_in_answer'
  /** A line, an event or the whole answer is longer than its limit. */
  | 'too_large';

/** No cooldown is longer, whatever Retry-After says. */
const cooldownSecondsMax = 86_400;

interface FailureFacts {
  retryAfterSeconds?: number | undefined;
  vendorCode?: string | undefined;
  fault?: ConnectFault | undefined;
  raw?: UpstreamError | undefined;
}

/**
 * A failed attempt that the caller did not cause; another channel may succeed. Its message holds no text of the upstream.
 */
export class UpstreamFailure extends Error {
  override readonly name = 'UpstreamFailure';
  readonly kind: UpstreamFailureKind;
  readonly status: number | undefined;
  /** The cooldown that the upstream asked for, at most a day. */
  readonly retryAfterSeconds: number | undefined;
  /** Unlimited, for clients. */
  readonly statedRetrySeconds: number | undefined;
  /** For the log: a published word of the upstream. */
  readonly vendorCode: string | undefined;
  /** For the log, which alone tells the causes of a missing connection apart. */
  readonly reason: string;
  /** The upstream's error, if it was read. Must not reach clients or logs. */
  readonly raw: UpstreamError | undefined;

  constructor(kind: UpstreamFailureKind, status?: number, facts: FailureFacts = {}) {
    super(`upstream failed: ${kind}${status === undefined ? '' : ` ${status}`}`);
    const { retryAfterSeconds: statedSeconds, vendorCode, fault, raw } = facts;
    this.raw = raw;
    this.kind = kind;
    this.status = status;
    this.statedRetrySeconds = statedSeconds;
    this.retryAfterSeconds =
      statedSeconds === undefined ? undefined : Math.min(statedSeconds, cooldownSecondsMax);
    this.vendorCode = vendorCode;
    this.reason = ['upstream', kind, fault ?? status].filter((word) => word !== undefined).join('_');
  }

  static from(error: unknown): UpstreamFailure | undefined {
    if (error instanceof UpstreamFailure) return error;
    if (!(error instanceof TransportError)) return undefined;
    const { kind, fault } = error;
    if (fault) return new UpstreamFailure('connect', undefined, { fault });
    return new UpstreamFailure(kind === 'aborted' ? 'timeout' : kind);
  }
}

/** An error object of an upstream. All fields but `message` are machine-readable. */
export interface UpstreamError {
  /** Free text; it may quote what the caller wrote. */
  message?: unknown;
  type?: unknown;
  code?: unknown;
  param?: unknown;
  /** Reasons inside the error's details, such as Google's `API_KEY_INVALID`. */
  reasons?: readonly string[];
  /** Facts beside the message, such as Anthropic's `error_code`. */
  details?: JsonRecord;
  /** Paths of fields that the upstream's validator does not know. */
  unknownFields?: readonly string[];
}

/** The upstream refused the request itself, so another channel would refuse it too. Texts are scrubbed. */
export class CallerFault extends Error {
  override readonly name = 'CallerFault';
  readonly status: number;
  readonly param: string | null;
  readonly code: string;
  /** Some clients choose an error class by them. */
  readonly details: JsonRecord | undefined;
  /** As the upstream sent it; not for clients or logs. */
  readonly raw: UpstreamError;

  constructor({ status, message, param, code, details, raw }: Omit<CallerFault, 'name' | 'cause' | 'stack'>) {
    super(message);
    this.status = status;
    this.param = param;
    this.code = code;
    this.details = details;
    this.raw = raw;
  }
}

/** An error event in an answer with status 200. A dialect's reader throws it; `read-failure.ts` decides what it means. */
export class ErrorInAnswer extends Error {
  override readonly name = 'ErrorInAnswer';
  readonly error: UpstreamError;

  constructor(error: UpstreamError) {
    super('error in answer');
    this.error = error;
  }
}
