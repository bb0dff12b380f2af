import type { Machine } from './machine.ts';

/** Limits of a stream of server-sent events. Lengths are in UTF-16 code units. */
interface SseLimits {
  lineLengthMax: number;
}

export class SseTooLong extends Error {
  override readonly name = 'SseTooLong';
}

/**
 * Converts text, cut at any position, to the `data` of each server-sent event (lines joined by a line feed).
 * Follows the HTML standard's "event stream" for line ends, comments and fields. Also accepts a last event
 * without a blank line after it, because some upstreams omit that line.
 */
export class SseDecoder implements Machine<string, string> {
  readonly #limits: SseLimits;
  #line = '';
  #data: string[] = [];
  #dataLength = 0;
  #afterCarriageReturn = false;

  constructor(limits: SseLimits) {
    this.#limits = limits;
  }

  push(text: string): string[] {
    const events: string[] = [];
    let start = 0;
    if (this.#afterCarriageReturn && text.length > 0) {
      if (text[0] === '\n') start = 1;
      this.#afterCarriageReturn = false;
    }
    const lineEnd = text.includes('\r') ? eitherLineEnd : lineFeedOnly;
    for (;;) {
      const end = lineEnd(text, start);
      if (end < 0) break;
      this.#take(this.#line + text.slice(start, end), events);
      this.#line = '';
      start = end + 1;
      if (text[end] !== '\r') continue;
      if (start === text.length) this.#afterCarriageReturn = true;
      else if (text[start] === '\n') start += 1;
    }
    this.#line += text.slice(start);
    if (this.#line.length > this.#limits.lineLengthMax)
      throw new SseTooLong('a line of the stream is too long');
    return events;
  }

  end(): string[] {
    const events: string[] = [];
    this.#take(this.#line, events);
    this.#take('', events);
    this.#line = '';
    return events;
  }

  #take(line: string, events: string[]): void {
    if (line === '') {
      if (this.#data.length > 0) events.push(this.#data.join('\n'));
      this.#data = [];
      this.#dataLength = 0;
      return;
    }
    if (!line.startsWith('data')) return;
    if (line.length > 4 && line[4] !== ':') return;
    const value = line.slice(line[5] === ' ' ? 6 : 5);
    this.#dataLength += value.length;
    if (this.#dataLength > this.#limits.lineLengthMax)
      throw new SseTooLong('an event of the stream is too long');
    this.#data.push(value);
  }
}

/** For texts without a CR, the usual case: searching for a CR again at every line takes quadratic time. */
const lineFeedOnly = (text: string, from: number): number => text.indexOf('\n', from);

function eitherLineEnd(text: string, from: number): number {
  const lineFeed = text.indexOf('\n', from);
  const carriageReturn = text.indexOf('\r', from);
  if (carriageReturn < 0) return lineFeed;
  return lineFeed < 0 ? carriageReturn : Math.min(lineFeed, carriageReturn);
}

/** A server-sent event without a name, as Chat Completions streams use it. `data` has no line breaks (it is JSON). */
export const dataFrame = (data: string): string => `data: ${data}\n\n`;

const eventHead = (event: string): string => `event: ${event}\ndata: `;
const eventEnd = '\n\n';

/** A named server-sent event, as Responses streams use it. */
export const eventFrame = (event: string, data: string): string => eventHead(event) + data + eventEnd;

/** The same in pieces, which belong together: a frame would be a copy of long data. */
export const eventPieces = (event: string, data: string): string[] => [eventHead(event), data, eventEnd];

/** A comment. Clients ignore it; proxies count it as traffic and keep the connection open. */
export const commentFrame = (text: string): string => `: ${text}\n\n`;
