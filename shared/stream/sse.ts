/**
 * Server-sent events: decodes those of upstreams and of the relay's own event log, and writes those of answers. Must never keep
 * more of a stream than its limit.
 */
import { createParser } from 'eventsource-parser';
import type { Machine } from './machine.ts';

/** A line or an event has no end within the limit. */
export class SseTooLong extends Error {
  override readonly name = 'SseTooLong';
}

/**
 * Converts text, cut at any position, to the `data` of each server-sent event (lines joined by a line feed). Also accepts a
 * last event without a blank line after it, because some upstreams omit that line.
 */
export class SseDecoder implements Machine<string, string> {
  readonly #lengthMax: number;
  readonly #parser = createParser({ onEvent: ({ data }) => this.#add(data) });
  readonly #events: string[] = [];
  /** UTF-16 code units since the last event: the parser itself keeps a line or an event of any length. */
  #openLength = 0;

  constructor({ lineLengthMax }: { lineLengthMax: number }) {
    this.#lengthMax = lineLengthMax;
  }

  push(text: string): string[] {
    this.#openLength += text.length;
    this.#parser.feed(text);
    if (this.#openLength > this.#lengthMax) throw new SseTooLong('an event of the stream is too long');
    return this.#events.splice(0);
  }

  end(): string[] {
    this.#parser.feed('\n\n');
    return this.#events.splice(0);
  }

  #add(data: string): void {
    this.#events.push(data);
    this.#openLength = 0;
  }
}

/** A server-sent event without a name, as Chat Completions streams use it. `data` has no line breaks (it is JSON). */
export const renderDataFrame = (data: string): string => `data: ${data}\n\n`;

const eventHead = (event: string): string => `event: ${event}\ndata: `;
const eventEnd = '\n\n';

/** A named server-sent event, as Responses streams use it. */
export const renderEventFrame = (event: string, data: string): string => eventHead(event) + data + eventEnd;

/** The same in pieces, which belong together: a frame would be a copy of long data. */
export const renderEventPieces = (event: string, data: string): string[] => [
  eventHead(event),
  data,
  eventEnd,
];

/** A comment. Clients ignore it; proxies count it as traffic and keep the connection open. */
export const renderCommentFrame = (text: string): string => `: ${text}\n\n`;
