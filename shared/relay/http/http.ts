/** Host-neutral HTTP: the request that `http-entry` passes to the relay, and the response. */
import type { Clock, Ids } from '../ports/host.ts';
import type { Log } from '../ports/telemetry.ts';

/** Room in the memory of a host that serves many requests at once. */
export interface HeldRoom {
  /** False when there is none; nothing was taken then. */
  take(bytes: number): boolean;
  give(bytes: number): void;
}

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
  /** Reads the JSON body. Throws a Refusal (400, 413). Called only after the key check. */
  json(): unknown;
  /** The value of the header that tells upstreams which relays the call passed, this one last. Absent: it is not sent. */
  hops?: string;
  /** The body as it came, of any size, for signatures over its bytes. */
  rawBody(): string | Uint8Array;
  /** When the host will end the invocation, in epoch milliseconds. */
  hostDeadlineMs: number;
  /** Aborts when the host has to end before: the call then ends as at its deadline. Absent: it never has to. */
  hostEnds?: AbortSignal | undefined;
  /** For what the request holds beside its body; what it has not given back is free at its end. Absent: it has the host for itself. */
  room?: HeldRoom | undefined;
}

export interface RelayResponse {
  status: number;
  headers: Record<string, string>;
  /**
   * Text, or a stream of text, to be read as fast as the connection takes it. Failures are rendered in the protocol;
   * where that is impossible the stream throws, and the host breaks the connection.
   */
  body: string | AsyncIterable<string>;
  /** Whether nothing follows the text that was read last, so that a host can send it together with the end. */
  endsHere?: () => boolean;
  /**
   * Resolves when the host must break the connection at once, also while it waits for the connection to take something:
   * a client that takes nothing never sees what the stream throws. Never rejects; absent: never.
   */
  cut?: Promise<AnswerCut>;
  /**
   * A host that learns when its connection has closed gives that here before it reads the body: buffers behind it may hold
   * the end of an answer for a client that takes nothing. A host that does not is taken to have handed on what it read.
   */
  closes?: (closed: Promise<void>) => void;
  /** Resolves when all work inside the invocation has finished: reading to the end, settling, logging. */
  done: Promise<void>;
}

/** Handles requests of one endpoint group. Never rejects: every error becomes a response. */
export type Handle = (request: RelayRequest) => Promise<RelayResponse>;

/** A handle with everything that a host needs to serve it; created by `functions/compose`. */
export interface HostedHandle {
  handle: Handle;
  /** What the first request would have to wait for, done before there is one. Never rejects. */
  prepare?: () => Promise<void>;
  clock: Clock;
  ids: Ids;
  log: Log;
  /** Accepted values of `x-relay-origin`; an empty list refuses every request. */
  originSecrets: readonly string[];
  /** true on the local stack: the public address is http there. */
  local: boolean;
}

/** The end of an answer that is not whole: the one thing that every host maps to a broken connection. */

/**
 * What the client got is not the whole answer, and the protocol has no way to say so: the host must break the connection,
 * never end it.
 */
export class AnswerCut extends Error {
  override readonly name = 'AnswerCut';
  constructor() {
    super('the connection was broken before the answer was whole');
  }
}

/** The headers of a key's limit a minute, under OpenAI's names. */
export const rateHeaders = (rpm: number, remaining: number, nowMs: number): Record<string, string> => ({
  'x-ratelimit-limit-requests': String(rpm),
  'x-ratelimit-remaining-requests': String(remaining),
  'x-ratelimit-reset-requests': `${secondsOfMinuteLeft(nowMs)}s`,
});

export const secondsOfMinuteLeft = (nowMs: number): number => Math.ceil((60_000 - (nowMs % 60_000)) / 1000);
