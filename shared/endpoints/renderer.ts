import type { Machine } from '../stream/machine.ts';
import type { ChatChunk } from '../wire/chat-response.ts';
import type { ErrorObject } from '../wire/error-body.ts';

/**
 * Turns the canonical stream into the text of one endpoint in one mode. Its first text commits the status 200. The renderer
 * of a JSON answer returns its only text at the end.
 */
export interface Renderer extends Machine<ChatChunk, string> {
  readonly contentType: string;
  /** After this much silence the 200 goes out with a sign of life, so that no proxy gives up on the answer. */
  readonly commitAfterMs: number;
  /** A sign of life, sent after each further `idleMs` of silence. */
  idle(): string;
  /** The end of an answer that failed after its status was sent. */
  failed(error: ErrorObject): string;
}

/** Silence between two signs of life. The edge cuts a connection after 60 s without a byte. */
export const idleMs = 15_000;

/** The status of a stream is held for its first content. */
export const streamedAnswer = {
  contentType: 'text/event-stream; charset=utf-8',
  commitAfterMs: 20_000,
};

/** The status of a JSON answer is held for the whole answer. White space before a JSON document is part of JSON. */
export const jsonAnswer = {
  contentType: 'application/json',
  commitAfterMs: 45_000,
  idle: () => ' ',
  failed: (error: ErrorObject) => JSON.stringify({ error }),
};
