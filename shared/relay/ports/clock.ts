/**
 * What the relay needs from the world. Everything outside the core (network, clock, store, log) comes in
 * through these; adapters implement them, tests implement them with virtual time and scripted upstreams.
 */
import type { AccountRow } from '../../config/rows/account-row.ts';
import type { KeyRow } from '../../config/rows/key-row.ts';
import type { Snapshot } from '../../config/snapshot.ts';
import type { ChannelHealth } from './channel-health.ts';
import type { IdempotencyStore } from '../call/idempotency-claim.ts';
import type { QuotaStore } from './quota-store.ts';
import type { SearchPorts } from '../search/search.ts';

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after that many milliseconds, or at once when the signal aborts. Never rejects. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
}

export interface Random {
  /** A number in [0, 1), for jitter and weights; never for secrets. */
  next(): number;
}

export interface Ids {
  /** A new request id: 26 characters [0-9a-z], sorts by time of creation. */
  next(): string;
}

export interface ConfigSource {
  /** The configuration to serve this request with. Throws StoreUnavailable when there has never been one. */
  current(): Promise<Snapshot>;
}

/** Why a key lookup found nothing usable is for the log only; clients see one message for all. */
export type KeyLookup =
  | {
      row: KeyRow;
      /** Absent: no row, or one that does not fit: no plan is held. */ account?: AccountRow | undefined;
    }
  | { missing: 'unknown' | 'invalid_row' };

export interface KeyStore {
  /** Looks a whole `sk-` key up by its hash. Throws StoreUnavailable. */
  find(secretKey: string): Promise<KeyLookup>;
}

/** There is no such secret, or this function may not read it: certain until somebody changes something. */
export class SecretMissing extends Error {
  override readonly name: string = 'SecretMissing';
}

export interface SecretStore {
  /** Throws SecretMissing, or whatever kept the store from answering. The value behind a reference such as `ssm:/relay/<stack>/name` or, locally, `env:NAME`. */
  read(reference: string): Promise<string>;
  /** Reads it anew, past every cache; true when it is another value now. Never rejects. */
  refresh(reference: string): Promise<boolean>;
}

/** What a signature of AWS is good for. */
export interface AwsScope {
  service: string;
  region: string;
}

export interface UpstreamRequest {
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

export interface UpstreamTransport {
  /** Sends the request and resolves with the reply's head. Rejects with TransportError. */
  send(request: UpstreamRequest, signal: AbortSignal): Promise<UpstreamReply>;
}

/** `kind` says how far the request came: nothing was sent after a `connect` failure. */
export class TransportError extends Error {
  readonly kind: 'connect' | 'reset' | 'aborted';
  constructor(kind: 'connect' | 'reset' | 'aborted', message: string) {
    super(message);
    this.name = 'TransportError';
    this.kind = kind;
  }
}

/** The store could not be reached; nothing was read or written. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable';
}

/** One line per request. Never holds a prompt, an answer, a secret or an upstream's own words. */
export interface RequestLog {
  request_id: string;
  endpoint: string;
  status: number;
  /** How it ended: `completed`, `refused`, `failed`, `client_gone`. */
  end: string;
  duration_ms: number;
  code?: string | undefined;
  /** What the client is not told, in our own words: `key_disabled`, `upstream_html`. */
  reason?: string | undefined;
  key_hint?: string | undefined;
  account?: string | undefined;
  model?: string | undefined;
  channel?: string | undefined;
  /** Declared tools that no chat upstream can have. */
  dropped_tools?: number | undefined;
  /** `web-` calls alone: `found`, `empty`, `none`, `no_query`, `timeout` or `failed`. */
  search?: string | undefined;
  attempts?: { channel: string; outcome: string }[] | undefined;
  upstream_status?: number | undefined;
  first_content_ms?: number | undefined;
  prompt_tokens?: number | undefined;
  completion_tokens?: number | undefined;
  usage_estimated?: boolean | undefined;
  /** The upstream told nonsense counts, which were clamped. */
  usage_clamped?: boolean | undefined;
  /** What was charged, in yuan, as an exact decimal. */
  charge?: string | undefined;
  plan_slot?: string | undefined;
}

export interface Log {
  request(entry: RequestLog): void;
  /** Something that operators or tools act on, by name. Fields are ours: ids, amounts, words of our own. */
  event(name: string, fields: Record<string, unknown>): void;
  /** Something of ours went wrong; `name` and `stack` only, never a message that may quote foreign text. */
  fault(requestId: string, error: unknown): void;
}

export interface ChatPorts extends SearchPorts {
  clock: Clock;
  config: ConfigSource;
  keys: KeyStore;
  secrets: SecretStore;
  transport: UpstreamTransport;
  quotas: QuotaStore;
  health: ChannelHealth;
  idempotency: IdempotencyStore;
  random: Random;
  log: Log;
}
