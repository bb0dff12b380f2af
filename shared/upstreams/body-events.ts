import type { Machine } from '../stream/machine.ts';
import { SseDecoder, SseTooLong } from '../stream/sse-decode.ts';
import { UpstreamError } from './upstream-error.ts';

/** One JSON value of an upstream's answer, or its end mark. */
export type UpstreamEvent = { kind: 'value'; value: unknown } | { kind: 'done' };

export interface BodyLimits {
  /** Bytes of the whole answer. */
  answerBytesMax: number;
  /** Bytes of an answer that is one JSON document: it is held in memory as a whole. */
  documentBytesMax: number;
  /** UTF-16 code units of one line or event. */
  lineLengthMax: number;
}

/**
 * The bytes of an upstream's answer to JSON values. What the answer is, is read from its first character and not
 * from its content type, which proxies and upstreams get wrong: `{` or `[` is one JSON document, `<` a web page,
 * anything else server-sent events. Lines that are not JSON are passed over.
 */
export class BodyToUpstreamEvents implements Machine<Uint8Array, UpstreamEvent> {
  readonly #limits: BodyLimits;
  readonly #utf8 = new TextDecoder();
  readonly #sse: SseDecoder;
  #form: 'unknown' | 'json' | 'sse' = 'unknown';
  #document: string[] = [];
  #bytes = 0;

  constructor(limits: BodyLimits) {
    this.#limits = limits;
    this.#sse = new SseDecoder(limits);
  }

  push(bytes: Uint8Array): UpstreamEvent[] {
    this.#bytes += bytes.byteLength;
    if (this.#bytes > this.#limits.answerBytesMax) throw new UpstreamError('too_large');
    return this.#read(this.#utf8.decode(bytes, { stream: true }));
  }

  end(): UpstreamEvent[] {
    const events = this.#read(this.#utf8.decode());
    if (this.#form === 'json') return [{ kind: 'value', value: parseDocument(this.#document.join('')) }];
    return [...events, ...this.#sse.end().flatMap(readEvent)];
  }

  #read(text: string): UpstreamEvent[] {
    if (this.#form === 'unknown') this.#form = formOf(text);
    if (this.#form === 'json') {
      if (this.#bytes > this.#limits.documentBytesMax) throw new UpstreamError('too_large');
      this.#document.push(text);
      return [];
    }
    return this.#decode(text).flatMap(readEvent);
  }

  #decode(text: string): string[] {
    try {
      return this.#sse.push(text);
    } catch (error) {
      if (error instanceof SseTooLong) throw new UpstreamError('too_large');
      throw error;
    }
  }
}

function formOf(text: string): 'unknown' | 'json' | 'sse' {
  const first = text.trimStart()[0];
  if (first === undefined) return 'unknown';
  if (first === '<') throw new UpstreamError('html');
  return first === '{' || first === '[' ? 'json' : 'sse';
}

function parseDocument(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UpstreamError('cut');
  }
}

/** An event is one JSON value; upstreams that forget the blank line between events put several into one. */
function readEvent(data: string): UpstreamEvent[] {
  if (data.trim() === '[DONE]') return [{ kind: 'done' }];
  try {
    return [{ kind: 'value', value: JSON.parse(data) }];
  } catch {
    return data.includes('\n') ? data.split('\n').flatMap(readEvent) : [];
  }
}
