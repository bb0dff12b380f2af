/**
 * A worker thread that answers the calls whose reading holds the event loop, with the same handles as the main thread. A request
 * crosses by its head and its bytes, which are moved; an answer comes back text by text, each when the connection has taken the
 * one before. Must never leave a call waiting for a thread that has ended.
 */
import { MessageChannel, type MessagePort, type Worker } from 'node:worker_threads';
import type { HostRequest } from '../../shared/adapters/entry/http-entry.ts';
import type { HostAnswer } from '../../shared/adapters/entry/lambda-handlers.ts';
import { AnswerCut } from '../../shared/relay/http/http.ts';
import type { ServedFunctionName } from '../stack/constructs/function-descriptions.ts';
import type { BytesLeft } from './request-body.ts';

/** The values that a thread starts with. */
export interface ThreadStart {
  lane: LaneName;
  room: BytesLeft;
  requestBytesMax: number;
}

/** A request in the order in which its thread gets it. */
export interface ThreadCall {
  route: ServedFunctionName;
  request: Pick<HostRequest, 'method' | 'path' | 'query' | 'headers' | 'host' | 'deadlineMs'>;
  body: Uint8Array<ArrayBuffer>;
  /** Where the answer goes. */
  port: MessagePort;
}

/** Messages of the main thread about a call: send the next text, the reader left, the connection closed, end as at the deadline. */
export type ToThread = 'next' | 'return' | 'closed' | 'end';

/** Messages of the thread about a call. */
export type FromThread =
  | { head: Pick<HostAnswer, 'status' | 'headers'>; whole: Uint8Array | undefined }
  | { text: string | Uint8Array; endsHere: boolean }
  | { over: 'read' | 'cut' }
  | { broken: true }
  | { done: true };

/** `busy`: what takes some milliseconds of processor. `heavy`: what may take seconds. */
export type LaneName = 'busy' | 'heavy';

export class CallThread {
  readonly #worker: Worker;
  readonly #gone = new AbortController();

  constructor(worker: Worker) {
    this.#worker = worker;
    worker.once('exit', () => this.#gone.abort());
  }

  /** Rejects when the thread ends before the answer begins: what it has reserved the sweeper settles. */
  answer(call: Omit<ThreadCall, 'port'>, ends: AbortSignal): Promise<HostAnswer> {
    const { port1: near, port2: port } = new MessageChannel();
    const answer = new AnswerFromThread(near, { ends, gone: this.#gone.signal });
    const { body } = call;
    // Moved, not copied.
    const moved = body.byteLength > 0 ? [port, body.buffer] : [port];
    this.#worker.postMessage({ ...call, port }, moved);
    return answer.head;
  }
}

/** One answer, as the host reads it. */
class AnswerFromThread {
  readonly head: Promise<HostAnswer>;
  readonly #port: MessagePort;
  readonly #head = Promise.withResolvers<HostAnswer>();
  readonly #done = Promise.withResolvers<void>();
  readonly #cut = Promise.withResolvers<AnswerCut>();
  readonly #over = new AbortController();
  #asked: PromiseWithResolvers<IteratorResult<string | Uint8Array>> | undefined;
  #endsHere = false;
  #isReading = true;

  constructor(port: MessagePort, { ends, gone }: { ends: AbortSignal; gone: AbortSignal }) {
    this.#port = port;
    this.head = this.#head.promise;
    const { signal } = this.#over;
    const listen = (to: AbortSignal, act: () => void): void =>
      to.aborted ? act() : to.addEventListener('abort', act, { signal });
    listen(ends, () => this.#say('end'));
    listen(gone, () => this.#failThread());
    port.on('message', (said: FromThread) => this.#receive(said));
  }

  #say(what: ToThread): void {
    this.#port.postMessage(what, []);
  }

  #receive(said: FromThread): void {
    if ('head' in said) this.#head.resolve(this.#answer(said));
    else if ('text' in said) {
      this.#endsHere = said.endsHere;
      this.#asked?.resolve({ done: false, value: said.text });
    } else if ('over' in said) {
      this.#isReading = false;
      if (said.over === 'cut') this.#asked?.reject(new AnswerCut());
      else this.#asked?.resolve({ done: true, value: undefined });
      this.#closeIfOver();
    } else if ('broken' in said) this.#cut.resolve(new AnswerCut());
    else {
      this.#over.abort();
      this.#done.resolve();
      this.#closeIfOver();
    }
  }

  #answer({ head, whole }: Extract<FromThread, { head: unknown }>): HostAnswer {
    if (whole) this.#isReading = false;
    return {
      ...head,
      body: whole ?? { [Symbol.asyncIterator]: () => this.#iterateTexts() },
      endsHere: () => this.#endsHere,
      cut: this.#cut.promise,
      closes: (closed) => void closed.then(() => this.#say('closed')),
      done: this.#done.promise,
    };
  }

  #iterateTexts(): AsyncIterator<string | Uint8Array, undefined> {
    return {
      next: () => {
        this.#asked = Promise.withResolvers();
        if (this.#isReading) this.#say('next');
        else this.#asked.reject(new AnswerCut());
        return this.#asked.promise;
      },
      return: () => {
        this.#say('return');
        this.#isReading = false;
        this.#asked?.resolve({ done: true, value: undefined });
        this.#closeIfOver();
        return Promise.resolve({ done: true, value: undefined });
      },
    };
  }

  /** The thread is gone, and with it the rest of the answer. */
  #failThread(): void {
    this.#isReading = false;
    this.#head.reject(new Error('the thread that read the call has ended'));
    this.#asked?.reject(new AnswerCut());
    this.#cut.resolve(new AnswerCut());
    this.#done.resolve();
    this.#port.close();
  }

  #closeIfOver(): void {
    if (!this.#isReading && this.#over.signal.aborted) this.#port.close();
  }
}

// Decides which thread answers a request. Work on the main thread must never block it for long, whatever
// the bytes contain.

/** A body of this size takes some 10 ms at most, whatever is in it. */
const quickBytesMax = 32 * 1024;
const busyBytesMax = 1024 * 1024;
/** The paths of stored responses, which may hold megabytes, and of texts that become thousands of vectors. */
const heavyPaths = /^\/v1\/(responses\/|embeddings)/;
/**
 * These make a small body large: state that is unpacked, stored responses and items that are read. A serializer escapes no letter, so who
 * escapes one may be hiding such a field.
 */
const grows = /encrypted_content|previous_response_id|item_reference|_[0-9a-z]{26}_|\\u00[4-7]/;

/** Chooses the thread of a request; without a lane, the main thread. */
export function laneOf({
  path,
  headers,
  body,
}: Pick<HostRequest, 'path' | 'headers'> & { body: Buffer }): LaneName | undefined {
  const isPacked = !['', 'identity'].includes((headers['content-encoding'] ?? '').trim().toLowerCase());
  if (isPacked || body.length > busyBytesMax || heavyPaths.test(path)) return 'heavy';
  if (body.length > quickBytesMax) return 'busy';
  return grows.test(body.toString('latin1')) ? 'heavy' : undefined;
}
