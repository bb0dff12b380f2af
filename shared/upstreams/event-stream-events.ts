/**
 * Converts the messages of AWS's event stream to JSON values. Throws an exception in the stream as its status would
 * be, after the values before it. Loaded at the first answer in that form.
 */
import {
  EventStreamBroken,
  EventStreamDecoder,
  type EventStreamMessage,
} from '../stream/event-stream-decode.ts';
import type { Machine } from '../stream/machine.ts';
import { asRecord, parseJson } from '../wire/json.ts';
import { ErrorInAnswer, UpstreamFailure } from './exchange.ts';

/** The statuses of Bedrock's exceptions, where they come without a stream. */
const statuses: Record<string, number> = {
  accessdenied: 403,
  internalserver: 500,
  modelerror: 424,
  modelnotready: 429,
  modelstreamerror: 424,
  modeltimeout: 408,
  servicequotaexceeded: 429,
  serviceunavailable: 503,
  throttling: 429,
};

/** Gives the text of each event: JSON, or several lines of it. */
export class EventStreamTexts implements Machine<Uint8Array, string> {
  readonly #decoder: EventStreamDecoder;
  #pendingFailure: Error | undefined;

  constructor(messageBytesMax: number) {
    this.#decoder = new EventStreamDecoder({ messageBytesMax });
  }

  push(bytes: Uint8Array): string[] {
    return this.#read(() => this.#decoder.push(bytes));
  }

  end(): string[] {
    return this.#read(() => this.#decoder.end());
  }

  #read(next: () => EventStreamMessage[]): string[] {
    if (this.#pendingFailure) throw this.#pendingFailure;
    const texts: string[] = [];
    try {
      for (const message of next()) texts.push(textOf(message));
    } catch (error) {
      const failure = error instanceof EventStreamBroken ? convertBrokenStream(error) : (error as Error);
      if (texts.length === 0) throw failure;
      this.#pendingFailure = failure;
    }
    return texts;
  }
}

const convertBrokenStream = ({ kind }: EventStreamBroken): UpstreamFailure =>
  new UpstreamFailure(kind === 'too_long' ? 'too_large' : kind === 'cut' ? 'cut' : 'junk');

/** Throws for an exception. Streams of models wrap each event as base64 in `bytes`. */
function textOf({ headers, payload }: EventStreamMessage): string {
  const text = new TextDecoder().decode(payload);
  const kind = headers.get(':message-type');
  if (kind === 'exception' || kind === 'error') throw exceptionOf(headers, text);
  const { bytes } = asRecord(parseJson(text));
  return typeof bytes === 'string' ? decodeBase64(bytes) : text;
}

function exceptionOf(headers: EventStreamMessage['headers'], text: string): Error {
  const name = headers.get(':exception-type') ?? headers.get(':error-code') ?? '';
  const status = statuses[name.toLowerCase().replace(/exception$/, '')];
  if (status !== undefined) return new UpstreamFailure('status', status);
  const { message = headers.get(':error-message') } = asRecord(parseJson(text));
  const isCallersFault = name.toLowerCase() === 'validationexception';
  return new ErrorInAnswer({ message, type: name, ...(isCallersFault && { code: 400 }), reasons: [name] });
}

function decodeBase64(bytes: string): string {
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(bytes), (character) => character.charCodeAt(0)));
  } catch {
    return '';
  }
}
