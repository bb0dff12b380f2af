/** An HTTP request to an upstream and its reply, before any dialect reads it. */

/** The service and region that a request is signed for. */
export interface AwsScope {
  service: string;
  region: string;
}

export interface UpstreamRequest {
  /** Absent: POST. */
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

/** A failed exchange. `kind` is the stage of the failure; after `connect` nothing was sent. */
export class TransportError extends Error {
  readonly kind: 'connect' | 'reset' | 'aborted';
  /** The system's error code, such as ECONNREFUSED. */
  readonly code: string | undefined;
  constructor(kind: 'connect' | 'reset' | 'aborted', message: string, code?: string) {
    super(message);
    this.name = 'TransportError';
    this.kind = kind;
    this.code = code;
  }
}
