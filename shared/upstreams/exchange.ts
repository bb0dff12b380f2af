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

/**
 * Why there was no connection. `address`: the relay may not connect there. `timeout`: neither refused nor connected in
 * time. `tls_...`: the certificate has expired, is signed by nobody who is trusted, or is for another host.
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

/** A failed exchange. `kind` is its stage; after `connect` nothing was sent. `encoding`: compressed, and unreadable. */
export class TransportError extends Error {
  readonly kind: 'connect' | 'reset' | 'aborted' | 'encoding';
  /** The system's error code, such as ECONNREFUSED. */
  readonly code?: string;
  /** Only with kind `connect`. Absent: another cause. */
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
