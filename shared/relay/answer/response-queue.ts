/** The bounded queue between an answer and its client's connection. */
/**
 * The writer is never blocked by the client; the reader is the client's connection. The first text commits
 * the answer. Text is dropped after the client has disconnected.
 */
export class ResponseQueue implements AsyncIterable<string> {
  readonly #lengthMax: number;
  #queue: string[] = [];
  #length = 0;
  #ended = false;
  #left = false;
  #wakeReader = Promise.withResolvers<void>();
  #wakeWriter = Promise.withResolvers<void>();

  /** `lengthMax`: UTF-16 code units that may wait; above it, `full` is true. */
  constructor(lengthMax: number) {
    this.#lengthMax = lengthMax;
  }

  /** Text was pushed, so the status can no longer change. */
  committed = false;

  /** Resolves at the first text, or at the end of an answer without text. */
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

  /** To be called when the client has disconnected or has not read for too long. */
  leave(): void {
    this.#left = true;
    this.#queue = [];
    this.#length = 0;
    this.#wakeReader.resolve();
    this.#wakeWriter.resolve();
  }

  /** Resolves when the client has read something or has disconnected. */
  taken(): Promise<void> {
    return this.#wakeWriter.promise;
  }

  /** Can be read once. Each read returns all waiting text. */
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
