/** Host-neutral HTTP: what `http-entry` hands to the relay, and what it gets back. */
import type { Clock } from '../ports/clock.ts';
import type { Ids } from '../ports/ids.ts';
import type { Log } from '../ports/telemetry.ts';

export interface RelayRequest {
  id: string;
  method: string;
  /** Decoded path without query, e.g. `/v1/chat/completions`. */
  path: string;
  query: URLSearchParams;
  /** Names in lower case. */
  headers: Record<string, string | undefined>;
  /** The public base address including `/v1`, for messages. */
  baseUrl: string;
  /** Reads the JSON body. Throws a Refusal (400, 413): called only after the key was checked. */
  json(): unknown;
  /** When the host will end the invocation, in epoch milliseconds. */
  hostDeadlineMs: number;
}

export interface RelayResponse {
  status: number;
  headers: Record<string, string>;
  /** Text, or a stream of it that never throws: failures are rendered in the protocol. */
  body: string | AsyncIterable<string>;
  /** Resolves when all is done that must happen inside the invocation (reading on, settling, logging). */
  done: Promise<void>;
}

/** One endpoint group. Never rejects: whatever goes wrong becomes an answer. */
export type Handle = (request: RelayRequest) => Promise<RelayResponse>;

/** A handle with all that a host needs to serve it; `functions/compose` makes them. */
export interface HostedHandle {
  handle: Handle;
  clock: Clock;
  ids: Ids;
  log: Log;
  /** Accepted values of `x-relay-origin`; an empty list refuses every request. */
  originSecrets: readonly string[];
  /** true on the local stack: the public address is http there. */
  local: boolean;
}
