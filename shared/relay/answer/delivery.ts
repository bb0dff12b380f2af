/**
 * The way of an answer to its client, and how long one that reads slowly or not at all is waited for. Must never let a stuck client have what looks like a whole answer.
 */
import type { ChatCall } from '../call/call.ts';
import { within } from '../retry.ts';
import type { Clock } from '../ports/host.ts';
import type { Log } from '../ports/telemetry.ts';
import { AnswerCut } from '../http/http.ts';

/** How long a client may take nothing. */
const stuckMs = 30_000;

interface DeliveredCall {
  identity: Pick<ChatCall['identity'], 'requestId'>;
  key: Pick<ChatCall['key'], 'account'>;
  signal: AbortSignal;
}

export class Delivery {
  readonly #queue: ResponseQueue;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #call: DeliveredCall;
  /** Resolves when the host's connection has closed, if the host reports that. */
  #closed: Promise<void> | undefined;

  constructor({ clock, log }: { clock: Clock; log: Log }, queue: ResponseQueue, call: DeliveredCall) {
    this.#queue = queue;
    this.#clock = clock;
    this.#log = log;
    this.#call = call;
  }

  /** The host will say when its connection has closed. */
  closes(closed: Promise<void>): void {
    this.#closed = closed;
  }

  /** Holds the upstream back while the client is slow. The upstream is read to its end even after a cut. */
  async awaitRoom(): Promise<void> {
    const { signal } = this.#call;
    while (this.#queue.full)
      if (!(await this.#within(stuckMs, this.#queue.awaitTaker(), signal)))
        this.cut(signal.aborted ? 'deadline' : 'stuck');
  }

  /**
   * Resolves when the client has the rest or cannot have it, at the latest then. Nothing but the invocation, and of a long
   * answer its reservation, waits for a slow client.
   */
  async awaitHandOver(untilMs: number): Promise<void> {
    const waitMs = (): number => Math.min(stuckMs, untilMs - this.#clock.now());
    while (!this.#queue.over) {
      const ms = waitMs();
      if (ms > 0 && (await this.#within(ms, this.#queue.awaitTaker()))) continue;
      if (ms < stuckMs) return;
      this.cut('stuck');
    }
    const closed = this.#closed;
    if (!closed || this.#queue.clientLeft) return;
    const ms = waitMs();
    if (ms > 0 && (await this.#within(ms, closed))) this.#closed = undefined;
    else if (ms === stuckMs) this.cut('stuck');
  }

  #within(waitMs: number, event: Promise<void>, signal?: AbortSignal): Promise<boolean> {
    return within(this.#clock, waitMs, { work: event.then(() => true), late: false, signal });
  }

  /** Without effect when the client has all, as far as the host says. */
  cut(why: 'stuck' | 'deadline' | 'unrendered'): void {
    if (!this.#queue.over) this.#queue.cut();
    else if (this.#closed && !this.#queue.clientLeft) this.#queue.abandon();
    else return;
    this.#closed = undefined;
    const { identity, key } = this.#call;
    this.#log.event('answer_cut', { request_id: identity.requestId, account: key.account, why });
  }
}

// The bounded queue between an answer and its client's connection. Must never end as if an answer were whole that is
// not: it ends after `end()` alone, else it throws AnswerCut.

/**
 * The most that one read returns, in UTF-16 code units. The host reads again once the connection took it, so a client
 * that takes this much within the time limit is slow, not stuck.
 */
const pieceLengthMax = 16 * 1024;

const finished = { done: true, value: undefined } as const;

/**
 * The writer is never blocked by the client; the reader is the client's connection. The first text commits
 * the answer. Text is dropped after the client has disconnected. Can be read once.
 */
export class ResponseQueue implements AsyncIterable<string>, AsyncIterator<string, undefined> {
  readonly #lengthMax: number;
  #queue: string[] = [];
  #length = 0;
  /** Texts that are held back, if `hold` was called. */
  #waitingTexts: string[] | undefined;
  #ended = false;
  #left = false;
  #over = false;
  #cut: AnswerCut | undefined;
  #wakeReader = Promise.withResolvers<void>();
  #wakeWriter = Promise.withResolvers<void>();
  readonly #onCut = Promise.withResolvers<AnswerCut>();
  /** Resolves at the first text, or at the end of an answer without text. */
  readonly #opened = Promise.withResolvers<void>();

  /** `lengthMax`: UTF-16 code units that may wait; above it, `full` is true. */
  constructor(lengthMax: number) {
    this.#lengthMax = lengthMax;
  }

  /** Text was pushed, so the status can no longer change. */
  committed = false;

  get opened(): Promise<void> {
    return this.#opened.promise;
  }

  /** Resolves when the host has to break the connection, even in the middle of a write. Never rejects. */
  get wasCut(): Promise<AnswerCut> {
    return this.#onCut.promise;
  }

  get clientLeft(): boolean {
    return this.#left;
  }

  /** The reader got everything and knows that it was all, or no longer reads. */
  get over(): boolean {
    return this.#over;
  }

  /** True if everything was read. */
  get endsHere(): boolean {
    return this.#ended && this.#queue.length === 0 && !this.#left;
  }

  get full(): boolean {
    return this.#length > this.#lengthMax;
  }

  push(text: string): void {
    if (text === '') return;
    this.committed = true;
    this.#opened.resolve();
    if (this.#left || this.#ended) return;
    if (this.#waitingTexts) {
      this.#waitingTexts.push(text);
      return;
    }
    this.#queue.push(text);
    this.#length += text.length;
    this.#wakeReader.resolve();
  }

  /** Holds back further text until `release` or the end. That does not count as waiting. */
  hold(): void {
    this.#waitingTexts ??= [];
  }

  release(): void {
    const held = this.#waitingTexts ?? [];
    this.#waitingTexts = undefined;
    for (const text of held) this.push(text);
  }

  end(): void {
    this.release();
    this.#ended = true;
    this.#opened.resolve();
    this.#wakeReader.resolve();
  }

  /** Breaks the connection: what the client has is not the whole answer. Without effect on one that is over. */
  cut(): void {
    if (this.#over) return;
    this.#cut = new AnswerCut();
    this.#leave();
    this.#onCut.resolve(this.#cut);
  }

  /** Breaks the connection of an answer that the host has whole and cannot hand on. */
  abandon(): void {
    this.#onCut.resolve(new AnswerCut());
  }

  /** Resolves when the client has read something or has disconnected. */
  awaitTaker(): Promise<void> {
    return this.#wakeWriter.promise;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The waiting text, at most `pieceLengthMax` of it. */
  async next(): Promise<IteratorResult<string, undefined>> {
    for (;;) {
      if (this.#cut) throw this.#cut;
      if (this.#queue.length > 0) return { done: false, value: this.#take() };
      if (this.#ended || this.#left) {
        this.#over = true;
        this.#wakeWriter.resolve();
        return finished;
      }
      await this.#wakeReader.promise;
      this.#wakeReader = Promise.withResolvers<void>();
    }
  }

  /** To be called when the client has disconnected, also while a read is pending. */
  return(): Promise<IteratorResult<string, undefined>> {
    if (!this.#over) this.#leave();
    return Promise.resolve(finished);
  }

  #leave(): void {
    this.#over = true;
    this.#left = true;
    this.#queue = [];
    this.#waitingTexts = undefined;
    this.#length = 0;
    this.#wakeReader.resolve();
    this.#wakeWriter.resolve();
  }

  #take(): string {
    let count = 0;
    let length = 0;
    for (const text of this.#queue) {
      if (length + text.length > pieceLengthMax) break;
      count += 1;
      length += text.length;
    }
    const text = count === 0 ? this.#takePiece() : this.#queue.splice(0, count).join('');
    this.#length -= text.length;
    this.#wakeWriter.resolve();
    this.#wakeWriter = Promise.withResolvers<void>();
    return text;
  }

  /** The start of a text that is too long for one read. */
  #takePiece(): string {
    const [first = ''] = this.#queue;
    // A character of two code units is not divided: its halves cannot be encoded.
    const isDivided = /[\uD800-\uDBFF]/.test(first.charAt(pieceLengthMax - 1));
    const piece = first.slice(0, pieceLengthMax - Number(isDivided));
    this.#queue[0] = first.slice(piece.length);
    return piece;
  }
}
