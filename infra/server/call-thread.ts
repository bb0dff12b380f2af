/**
 * A worker thread for calls that would block the event loop, with the same handles as the main thread. It gets a request's head, and
 * its bytes by transfer. The answer comes back text by text, each after the connection took the one before. Must never leave a
 * call waiting for a thread that has ended.
 */
import { MessageChannel, type MessagePort, type Worker } from 'node:worker_threads';
import type { HostRequest } from '../../shared/adapters/entry/http-entry.ts';
import type { HostAnswer } from '../../shared/adapters/entry/lambda-handlers.ts';
import { AnswerCut } from '../../shared/relay/http/http.ts';
import type { ServedFunctionName } from '../stack/constructs/function-descriptions.ts';
import type { BytesLeft } from './request-body.ts';

/** The start values of a thread. */
export interface ThreadStart {
  lane: LaneName;
  room: BytesLeft;
  requestBytesMax: number;
}

/** A request as its thread gets it. */
export interface ThreadCall {
  route: ServedFunctionName;
  request: Pick<HostRequest, 'method' | 'path' | 'query' | 'headers' | 'host' | 'deadlineMs'>;
  body: Uint8Array<ArrayBuffer>;
  /** The port for the answer. */
  port: MessagePort;
}

/** Messages of the main thread: send the next text, the reader left, the connection closed, end as at the deadline. */
export type ToThread = 'next' | 'return' | 'closed' | 'end';

/** Messages of the thread about a call. */
export type FromThread =
  | { head: Pick<HostAnswer, 'status' | 'headers'>; whole: Uint8Array | undefined }
  | { text: string | Uint8Array; endsHere: boolean }
  | { over: 'read' | 'cut' }
  | { broken: true }
  | { done: true };

/** `busy` takes some milliseconds of processor time, `heavy` may take seconds. */
export type LaneName = 'busy' | 'heavy';

export class CallThread {
  readonly #worker: Worker;
  readonly #gone = new AbortController();

  constructor(worker: Worker) {
    this.#worker = worker;
    worker.once('exit', () => this.#gone.abort());
  }

  /** Rejects if the thread ends before the answer begins. The sweeper then settles its reservation. */
  answer(call: Omit<ThreadCall, 'port'>, ends: AbortSignal): Promise<HostAnswer> {
    const { port1: near, port2: port } = new MessageChannel();
    const answer = new AnswerFromThread(near, { ends, gone: this.#gone.signal });
    const { body } = call;
    // Transfers the bytes instead of copying them.
    const moved = body.byteLength > 0 ? [port, body.buffer] : [port];
    this.#worker.postMessage({ ...call, port }, moved);
    return answer.head;
  }
}

/** An answer, as the host reads it. */
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

  /** The thread ended, so the rest of the answer is lost. */
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

// Chooses the thread of a request. Nothing that a body contains must block the main thread for
// long.

/** A body of this size takes at most about 10 ms. */
const quickBytesMax = 32 * 1024;
const busyBytesMax = 1024 * 1024;
/** Paths of stored responses, which may hold megabytes, and of embeddings, where texts become thousands of vectors. */
const heavyPaths = /^\/v1\/(responses\/|embeddings)/;
/**
 * Fields that make a small body expensive: state to unpack, stored responses and items to read. Serializers never escape letters, so an
 * escaped one may hide such a field.
 */
const grows = /encrypted_content|previous_response_id|item_reference|_[0-9a-z]{26}_|\\u00[4-7]/;

/** Chooses the lane of a request. Without a lane the main thread answers. */
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
