/** The bounded queue between an answer and its client's connection. */
/**
 * The writer goes on whatever the client does; the reader is the client's connection. The first text commits the answer.
 * When the client has left, text is dropped.
 */
export class ResponseQueue implements AsyncIterable<string> {
  readonly #lengthMax: number;
  #queue: string[] = [];
  #length = 0;
  #ended = false;
  #left = false;
  #wakeReader = Promise.withResolvers<void>();
  #wakeWriter = Promise.withResolvers<void>();

  /** `lengthMax`: UTF-16 code units that may wait; more than that and `push` says so. */
  constructor(lengthMax: number) {
    this.#lengthMax = lengthMax;
  }

  /** Text was queued: the status cannot change any more. */
  committed = false;

  /** Resolves with the first text, or with the end of an answer that has none. */
  readonly #opened = Promise.withResolvers<void>();

  get opened(): Promise<void> {
    return this.#opened.promise;
  }

  get clientLeft(): boolean {
    return this.#left;
  }

  get full(): boolean {
    return this.#length > this.#lengthMax;
  }

  push(text: string): void {
    if (text === '') return;
    this.committed = true;
    this.#opened.resolve();
    if (this.#left || this.#ended) return;
    this.#queue.push(text);
    this.#length += text.length;
    this.#wakeReader.resolve();
  }

  end(): void {
    this.#ended = true;
    this.#opened.resolve();
    this.#wakeReader.resolve();
  }

  /** The client hung up, or has not read for too long. */
  leave(): void {
    this.#left = true;
    this.#queue = [];
    this.#length = 0;
    this.#wakeReader.resolve();
    this.#wakeWriter.resolve();
  }

  /** Resolves when the client has taken something, or left. */
  taken(): Promise<void> {
    return this.#wakeWriter.promise;
  }

  /** Can be read once. All waiting text is handed out as one. */
  async *[Symbol.asyncIterator](): AsyncGenerator<string, void, undefined> {
    try {
      for (;;) {
        if (this.#queue.length > 0) yield this.#take();
        else if (this.#ended || this.#left) return;
        else {
          await this.#wakeReader.promise;
          this.#wakeReader = Promise.withResolvers<void>();
        }
      }
    } finally {
      this.leave();
    }
  }

  #take(): string {
    const text = this.#queue.join('');
    this.#queue = [];
    this.#length = 0;
    this.#wakeWriter.resolve();
    this.#wakeWriter = Promise.withResolvers<void>();
    return text;
  }
}
