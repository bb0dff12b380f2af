/** Converts the bytes of an upstream's answer to JSON values, for any dialect. Limits size and depth. */
import type { Machine } from '../stream/machine.ts';
import { JsonScan } from '../stream/json-scan.ts';
import { SseDecoder, SseTooLong } from '../stream/sse.ts';
import { checkBounds, parseJson } from '../wire/json.ts';
import { UpstreamFailure } from './exchange.ts';

/** One JSON value of an upstream's answer, or its end mark. `isWhole`: the answer is this one document. */
export type UpstreamEvent = { kind: 'value'; value: unknown; isWhole?: true } | { kind: 'done' };

export interface BodyLimits {
  answerBytesMax: number;
  /** Bytes of an answer that is one JSON document, which is held in memory completely. */
  documentBytesMax: number;
  /** UTF-16 code units of one line or event. */
  lineLengthMax: number;
}

/** The content type only tells AWS's event stream, whose frames are not text, from all other forms. */
export async function openBodyEvents(
  limits: BodyLimits,
  contentType?: string,
  hasLongLists = false,
): Promise<BodyEvents> {
  const isEventStream = /^application\/vnd\.amazon\.eventstream\b/i.test(contentType?.trim() ?? '');
  // As numbers of 17 digits, so many vectors as fit into memory have 180 MB.
  const wide = { ...limits, answerBytesMax: 4 * limits.answerBytesMax };
  if (hasLongLists && !isEventStream) return new BodyEvents(wide, undefined, new ListedObjects());
  if (!isEventStream) return new BodyEvents(limits);
  const { EventStreamTexts } = await import('./event-stream-events.ts');
  return new BodyEvents(limits, new EventStreamTexts(limits.lineLengthMax));
}

/**
 * Decides by the first character, because proxies and upstreams set wrong content types: `{` or `[` is one JSON
 * document, `<` a web page, anything else server-sent events. Skips lines that are not JSON or nest too deep.
 */
export class BodyEvents implements Machine<Uint8Array, UpstreamEvent> {
  readonly #limits: BodyLimits;
  readonly #utf8 = new TextDecoder();
  readonly #sse: SseDecoder;
  readonly #frames: Machine<Uint8Array, string> | undefined;
  readonly #objects: ListedObjects | undefined;
  #form: 'unknown' | 'json' | 'sse' = 'unknown';
  #document: string[] = [];
  /** Characters of the document that were already passed on as events. */
  #taken = 0;
  #bytes = 0;

  /** `frames` decodes an answer that is not text. `objects` takes the objects out of lists in a JSON document. */
  constructor(limits: BodyLimits, frames?: Machine<Uint8Array, string>, objects?: ListedObjects) {
    this.#limits = limits;
    this.#frames = frames;
    this.#objects = objects;
    this.#sse = new SseDecoder(limits);
  }

  push(bytes: Uint8Array): UpstreamEvent[] {
    this.#bytes += bytes.byteLength;
    if (this.#bytes > this.#limits.answerBytesMax) throw new UpstreamFailure('too_large');
    if (this.#frames) return this.#frames.push(bytes).flatMap(readEvent);
    return this.#read(this.#utf8.decode(bytes, { stream: true }));
  }

  end(): UpstreamEvent[] {
    if (this.#frames) return this.#frames.end().flatMap(readEvent);
    const events = this.#read(this.#utf8.decode());
    if (this.#form === 'json') {
      const text = this.#document.splice(0).join('');
      return [{ kind: 'value', value: parseDocument(text), isWhole: true }];
    }
    return [...events, ...this.#sse.end().flatMap(readEvent)];
  }

  #read(text: string): UpstreamEvent[] {
    if (this.#form === 'unknown') this.#form = formOf(text);
    if (this.#form === 'json') {
      const { remainder, objects } = this.#objects?.push(text) ?? { remainder: text, objects: [] };
      this.#document.push(remainder);
      for (const { length } of objects) this.#taken += length - 1;
      if (this.#bytes - this.#taken > this.#limits.documentBytesMax) throw new UpstreamFailure('too_large');
      return objects.map((object) => ({ kind: 'value', value: parseDocument(object) }));
    }
    try {
      return this.#sse.push(text).flatMap(readEvent);
    } catch (error) {
      if (error instanceof SseTooLong) throw new UpstreamFailure('too_large');
      throw error;
    }
  }
}

/**
 * Passes on each object of a document's list as soon as it is complete and leaves 0 in its place. Parsing 2,048
 * vectors of 4,096 numbers at once would take all memory of a function.
 */
class ListedObjects {
  /** Scans the text before the list: its strings may contain brackets. */
  readonly #before = new JsonScan();
  #isInList = false;
  #isPastList = false;
  #pieces: string[] = [];
  #scan: JsonScan | undefined;

  push(text: string): { remainder: string; objects: string[] } {
    const objects: string[] = [];
    let remainder = '';
    for (let left = text; left !== '';) {
      const length = this.#scan?.push(left) ?? this.#skipOutside(left);
      if (this.#scan) this.#pieces.push(left.slice(0, length));
      else remainder += left.slice(0, length);
      left = left.slice(length);
      if (this.#scan?.complete) {
        objects.push(this.#pieces.splice(0).join(''));
        remainder += '0';
        this.#scan = undefined;
      } else if (left !== '') this.#scan = new JsonScan();
    }
    return { remainder, objects };
  }

  /** Counts the characters before the next object of the list. */
  #skipOutside(text: string): number {
    let from = 0;
    for (; !this.#isInList && from < text.length; from += 1) {
      this.#isInList = this.#before.wantsValue && text.charAt(from) === '[';
      this.#before.push(text.charAt(from));
    }
    const next = this.#isInList && !this.#isPastList ? text.slice(from).search(/[{\]]/) : -1;
    this.#isPastList ||= text.charAt(from + next) === ']' && next >= 0;
    return next < 0 || this.#isPastList ? text.length : from + next;
  }
}

function formOf(text: string): 'unknown' | 'json' | 'sse' {
  const first = text.trimStart()[0];
  if (first === undefined) return 'unknown';
  if (first === '<') throw new UpstreamFailure('html');
  return first === '{' || first === '[' ? 'json' : 'sse';
}

function parseDocument(text: string): unknown {
  refuseWide(text);
  const value = parseJson(text);
  if (value === undefined) throw new UpstreamFailure('cut');
  if (isTooDeep(text)) throw new UpstreamFailure('junk');
  return value;
}

/**
 * An event is one JSON value, or several lines of them if the upstream omits the blank line between events.
 */
function readEvent(data: string): UpstreamEvent[] {
  if (data.trim() === '[DONE]') return [{ kind: 'done' }];
  refuseWide(data);
  const value = parseJson(data);
  if (value === undefined) return data.includes('\n') ? data.split('\n').flatMap(readEvent) : [];
  return isTooDeep(data) ? [] : [{ kind: 'value', value }];
}

/**
 * Values of one event or document: the log probabilities of 2,700 tokens with 20 likelier ones each. A value takes up
 * to 120 bytes of memory and only two characters of JSON, so the length alone bounds nothing.
 */
const valuesMax = 600_000;

/** Counted before the text is parsed, and only where it is long enough to hold so many. */
function refuseWide(text: string): void {
  if (text.length > 2 * valuesMax && checkBounds(text, { levelsMax: Infinity, valuesMax }) === 'values')
    throw new UpstreamFailure('too_large');
}

/**
 * Far deeper than any real answer. JSON.stringify is recursive and overflows the stack at about 5,000 levels.
 */
const levelsMax = 200;

/** A level takes two characters, so short texts need no check. */
const isTooDeep = (text: string): boolean =>
  text.length > 2 * levelsMax && checkBounds(text, { levelsMax, valuesMax: Infinity }) === 'levels';
