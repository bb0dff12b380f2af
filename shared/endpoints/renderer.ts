import type { Machine } from '../stream/machine.ts';
import type { ChatChunk } from '../wire/chat-response.ts';
import type { ErrorObject } from '../wire/error-body.ts';

/**
 * The canonical stream as the text of one endpoint in one mode. Its first text commits the answer: until then
 * the status is open. A JSON answer is a renderer that says nothing before its end.
 */
export interface Renderer extends Machine<ChatChunk, string> {
  readonly contentType: string;
  /** After this much silence the 200 goes out with a sign of life, so that no proxy gives up on the answer. */
  readonly commitAfterMs: number;
  /** A sign of life: what to say after another stretch of silence. */
  idle(): string;
  /** The ending of an answer that failed after it was committed. */
  failed(error: ErrorObject): string;
}

/** Silence between two signs of life. The edge cuts a connection after 60 s without a byte. */
export const idleMs = 15_000;
/** A stream's status is held this long for its first content. */
export const streamCommitMs = 20_000;
/** A JSON answer's status is held this long: its whole answer has to come first. */
export const jsonCommitMs = 45_000;
