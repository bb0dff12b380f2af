/**
 * A dispatched call that a run can stop: what the upstream had written stays, as an answer that ended at a limit. Must show
 * a failure as such when nothing was asked of an upstream, so that nothing is charged.
 */
import type { ChatChunk } from '../../../wire/chat-response.ts';
import type { DispatchedCall, DispatchReport } from '../../call/dispatch-report.ts';

export class StoppingDispatch implements DispatchedCall {
  readonly chunks: AsyncIterable<ChatChunk[]> = { [Symbol.asyncIterator]: () => this.#run() };
  readonly #dispatch: DispatchedCall;
  readonly #signal: AbortSignal;
  readonly #empty: () => ChatChunk;
  #wasAsked = false;
  #isCut = false;

  /**
   * @param signal also aborts the call itself
   * @param empty a chunk without content
   */
  constructor(dispatch: DispatchedCall, signal: AbortSignal, empty: () => ChatChunk) {
    this.#dispatch = dispatch;
    this.#signal = signal;
    this.#empty = empty;
    const note = (): void => void (this.#wasAsked = isAsked(dispatch.report()));
    // Before the attempt hears of it and reports a failure.
    if (signal.aborted) note();
    else signal.addEventListener('abort', note, { once: true });
  }

  get another(): boolean {
    return this.#dispatch.another && !this.#signal.aborted;
  }

  report(): DispatchReport {
    const report = this.#dispatch.report();
    return this.#isCut ? { ...report, isCut: true } : report;
  }

  written(): Promise<void> {
    return this.#dispatch.written();
  }

  async *#run(): AsyncGenerator<ChatChunk[], void, undefined> {
    let last: ChatChunk | undefined;
    let index: number | undefined;
    let isFinished = false;
    try {
      for await (const batch of this.#dispatch.chunks) {
        last = batch.at(-1) ?? last;
        const choices = batch.flatMap((chunk) => chunk.choices);
        index ??= choices[0]?.index;
        isFinished ||= choices.some(({ finish_reason: reason }) => reason !== null);
        yield batch;
        if (this.#signal.aborted) break;
      }
    } catch (error) {
      if (!this.#signal.aborted || !this.#wasAsked) throw error;
    }
    if (!this.#signal.aborted) return;
    this.#isCut = true;
    if (!isFinished) yield [ended(last ?? this.#empty(), index)];
  }
}

/** An upstream has the call, and has not failed. */
function isAsked({ tried }: DispatchReport): boolean {
  const { outcome } = tried.at(-1) ?? {};
  return outcome === 'under_way' || outcome === 'answered';
}

const ended = (chunk: ChatChunk, index = 0): ChatChunk => ({
  ...chunk,
  choices: [{ index, delta: {}, logprobs: null, finish_reason: 'length' }],
  usage: null,
});
