import type { Ending, Machine } from '../stream/machine.ts';
import type { ChatChunk } from '../wire/chat-response.ts';
import { keptToEnd } from '../wire/chat-request.ts';
import { Kept } from '../wire/chunk-content.ts';
import { InvalidRequest } from '../wire/invalid-request.ts';
import type { JsonRecord } from '../wire/json-record.ts';
import type { ErrorObject } from '../wire/public/error-body.ts';

/**
 * Converts the canonical stream to the text of one endpoint in one mode. The first text commits status 200.
 * The renderer of a JSON answer returns its only text at the end.
 */
export interface Renderer extends Machine<ChatChunk, string, Ending<string>> {
  readonly contentType: string;
  /** After this time without output, status 200 and a heartbeat are sent, so that proxies do not time out. */
  readonly commitAfterMs: number;
  /** The text of a heartbeat, sent after each further `idleMs` without output. */
  idle(): string;
  /** The answer is sent at its end, so it can begin again with a fresh renderer. Absent: it is sent as it comes. */
  readonly sentWhole?: true;
  /** The status and code of a request that the upstream finds too large, for clients that act on them. Absent: its own. */
  readonly tooLarge?: { status: number; code: string };
  /** The last text of an answer that fails after its status was sent. */
  failed(error: ErrorObject): string;
  /** What `end` would return before its last text, which it then leaves out. Absent: `end` alone. */
  close?(): string[];
  /**
   * The whole answer as an object, as its last text has it. Valid from `close` on; with an error, of an answer that fails
   * with it, at any time. Absent: answers of this endpoint are not objects that are kept.
   */
  whole?(error?: ErrorObject): JsonRecord;
  /** The answer as an object, before anything of it is there. Absent: as of `whole`. */
  queued?(): JsonRecord;
}

/** For one answer that is kept. The caller asked for it, so no upstream is at fault. */
export const keptForAnswer = (): Kept =>
  new Kept(
    keptToEnd.bytesMax,
    () =>
      new InvalidRequest(
        'answer_too_large',
        null,
        'The answer is longer than the relay can hold. Ask for fewer choices, log probabilities or tokens; an answer of Chat Completions with stream: true may be longer.',
      ),
  );

/** Time between two heartbeats. The edge closes a connection after 120 s without a byte, proxies of others after 60 s. */
export const idleMs = 15_000;

/** The status of a stream is held until its first content, or for `commitAfterMs`. */
export const streamedAnswer = {
  contentType: 'text/event-stream; charset=utf-8',
  commitAfterMs: 20_000,
};

/**
 * The status of a JSON answer is held until the answer is complete, or for `commitAfterMs`. A heartbeat is a
 * space, which JSON allows before a document.
 */
export const jsonAnswer = {
  contentType: 'application/json',
  sentWhole: true as const,
  commitAfterMs: 45_000,
  idle: () => ' ',
  failed: (error: ErrorObject) => JSON.stringify({ error }),
};
