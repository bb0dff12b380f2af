import { ChatToResponses } from './answer-events.ts';
import { commentFrame, eventFrame } from '../../stream/sse-encode.ts';
import type { ChatChunk } from '../../wire/chat-response.ts';
import type { ErrorObject } from '../../wire/error-body.ts';
import type { ResponsesEvent } from '../../wire/responses-response.ts';
import { jsonCommitMs, streamCommitMs, type Renderer } from '../renderer.ts';

/** One sign of life in this many is an event: some clients ignore comments and give up after minutes. */
const idlesPerEvent = 4;

/** Responses, `stream: true`: numbered events, then the stream closes. */
export class ResponsesStreamRenderer implements Renderer {
  readonly contentType = 'text/event-stream; charset=utf-8';
  readonly commitAfterMs = streamCommitMs;
  readonly #events: ChatToResponses;
  #number = 0;
  #idles = 0;

  constructor(events: ChatToResponses) {
    this.#events = events;
  }

  push(chunk: ChatChunk): string[] {
    const frames = this.#frames(this.#events.push(chunk));
    if (frames.length > 0) this.#idles = 0;
    return frames;
  }

  end(): string[] {
    return this.#frames(this.#events.end());
  }

  idle(): string {
    const opening = this.#frames(this.#events.start());
    if (opening.length > 0) return opening.join('');
    this.#idles += 1;
    if (this.#idles % idlesPerEvent > 0) return commentFrame('ping');
    return this.#frames([this.#events.inProgress()]).join('');
  }

  failed(error: ErrorObject): string {
    return this.#frames(this.#events.failed(error)).join('');
  }

  #frames(events: ResponsesEvent[]): string[] {
    return events.map(({ type, ...rest }) =>
      eventFrame(type, JSON.stringify({ type, sequence_number: this.#number++, ...rest })),
    );
  }
}

/** Responses, `stream: false`: the response of the last event of the same stream. */
export class ResponsesJsonRenderer implements Renderer {
  readonly contentType = 'application/json';
  readonly commitAfterMs = jsonCommitMs;
  readonly #events: ChatToResponses;

  constructor(events: ChatToResponses) {
    this.#events = events;
  }

  push(chunk: ChatChunk): string[] {
    this.#events.push(chunk);
    return [];
  }

  end(): string[] {
    return [JSON.stringify(this.#events.end().at(-1)?.['response'])];
  }

  idle(): string {
    return ' ';
  }

  failed(error: ErrorObject): string {
    return JSON.stringify({ error });
  }
}
