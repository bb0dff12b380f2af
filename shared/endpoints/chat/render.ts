import { ChunksToCompletion } from './fold.ts';
import { commentFrame, dataFrame } from '../../stream/sse-encode.ts';
import type { ChatChunk, AnswerIdentity } from '../../wire/chat-response.ts';
import type { ErrorObject } from '../../wire/error-body.ts';
import { jsonCommitMs, streamCommitMs, type Renderer } from '../renderer.ts';

/** Chat Completions, `stream: true`: a data frame per chunk, then `[DONE]`. */
export class ChatStreamRenderer implements Renderer {
  readonly contentType = 'text/event-stream; charset=utf-8';
  readonly commitAfterMs = streamCommitMs;
  readonly #identity: AnswerIdentity;
  readonly #includeUsage: boolean;
  #finish: ChatChunk | undefined;

  constructor(identity: AnswerIdentity, includeUsage: boolean) {
    this.#identity = identity;
    this.#includeUsage = includeUsage;
  }

  /** The last finish chunk waits for the usage that it carries, unless the client wants that in its own chunk. */
  push(chunk: ChatChunk): string[] {
    const finish = this.#finish;
    this.#finish = undefined;
    if (chunk.usage) {
      const { usage, quota } = chunk;
      const priced = finish && quota !== undefined ? { ...finish, quota } : finish;
      if (this.#includeUsage || !priced) return [...frames(priced), ...frames(chunk)];
      return frames({ ...priced, usage });
    }
    if (!chunk.choices.some((choice) => choice.finish_reason !== null))
      return [...frames(finish), ...frames(chunk)];
    this.#finish = chunk;
    return frames(finish);
  }

  end(): string[] {
    return [...frames(this.#finish), dataFrame('[DONE]')];
  }

  idle(): string {
    return commentFrame('ping');
  }

  /** Without `choices`: clients overlook an error beside them. */
  failed(error: ErrorObject): string {
    const { requestId, created, model } = this.#identity;
    const id = `chatcmpl-${requestId}`;
    const chunk = { id, object: 'chat.completion.chunk', created, model, error };
    return dataFrame(JSON.stringify(chunk)) + dataFrame('[DONE]');
  }
}

/** Chat Completions, `stream: false`: one JSON object at the end. */
export class ChatJsonRenderer implements Renderer {
  readonly contentType = 'application/json';
  readonly commitAfterMs = jsonCommitMs;
  readonly #fold = new ChunksToCompletion();

  push(chunk: ChatChunk): string[] {
    this.#fold.push(chunk);
    return [];
  }

  end(): string[] {
    return [JSON.stringify(this.#fold.completion())];
  }

  /** White space before a JSON document is part of JSON. */
  idle(): string {
    return ' ';
  }

  failed(error: ErrorObject): string {
    return JSON.stringify({ error });
  }
}

const frames = (chunk: ChatChunk | undefined): string[] => (chunk ? [dataFrame(JSON.stringify(chunk))] : []);
