/** The ports to the host: time, chance, encryption, the transport, a web search. */
import type { UpstreamReply, UpstreamRequest } from '../../upstreams/exchange.ts';

/** The time, real or virtual. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after the given time, or immediately when the signal aborts. Never rejects. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
}

export interface Ids {
  /** A new request id: 26 characters [0-9a-z], sorts by time of creation. */
  next(): string;
}

export interface Random {
  /** A number in [0, 1), for jitter and weights; never for secrets. */
  next(): number;
}

/** Signatures with a shared secret: HMAC with SHA-256, in small hex digits. */
export interface Hmac {
  sign(secret: string, message: string | Uint8Array): string;
  /** Takes the same time for every wrong signature. */
  matches(secret: string, message: string | Uint8Array, signatures: readonly string[]): boolean;
}

/**
 * The name under which upstreams know an account's name for an end user or a cache. The same for the same account and
 * name, at most 64 characters, and nothing of the name can be read from it.
 */
export type Pseudonym = (account: string, name: string) => string;

/** Seals text so that a client can keep it without reading or changing it. */
export interface Sealer {
  /** One line of ASCII: see `sealPrefix`. */
  seal(text: string): string;
  /**
   * Opens a seal of any function of this stack. `unknown_key`: its key is gone or has another value. `damaged`: it was
   * changed, or it is not a seal.
   */
  open(sealed: string): { text: string } | 'unknown_key' | 'damaged';
}

/** Unpacks what is compressed in callers' files, which are read to know what they may cost. */
export type { Inflate } from '../../billing/estimate/pdf-size.ts';

export interface UpstreamTransport {
  /** Sends the request and resolves with the reply's head. Rejects with TransportError. */
  send(request: UpstreamRequest, signal: AbortSignal): Promise<UpstreamReply>;
}

export interface SearchResult {
  title: string;
  url: string;
  text: string;
  /** In the provider's own format. */
  date?: string | undefined;
}

export interface SearchProvider {
  /**
   * May return an empty list. Rejects with SearchRefused, or with another error when the provider does not answer or its reply has
   * no results.
   * @param sent is called before the request goes out
   */
  search(query: string, signal: AbortSignal, sent: () => void): Promise<SearchResult[]>;
}

/** The search provider could not be reached, or answered with an error, so it bills nothing. */
export class SearchRefused extends Error {
  override readonly name = 'SearchRefused';
}
