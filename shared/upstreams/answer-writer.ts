/**
 * What the readers of all dialects write with: canonical chunks, ids of calls, and the bound of what one answer makes the
 * relay keep.
 */
import { type ChatChunk, type ChatDelta, type FinishReason, Kept } from '../wire/chat-response.ts';
import type { StatePart } from '../wire/turn-state.ts';
import type { ReaderContext } from './dialect.ts';
import { UpstreamFailure } from './exchange.ts';

/** Far more than a model writes, in any script. */
const keptBytesMax = 4 * 1024 * 1024;
/** Eight times what OpenAI allows. */
export const callsMax = 1024;

export const tooLarge = (): UpstreamFailure => new UpstreamFailure('too_large');

export class AnswerWriter {
  readonly kept = new Kept(keptBytesMax, tooLarge);
  readonly #context: Pick<ReaderContext, 'identity' | 'callIds'>;
  /** The choices that have their role. */
  readonly #opened = new Set<number>();
  readonly #shownIds = new Set<string>();
  /** The calls that clients see, of all choices. */
  calls = 0;

  constructor(context: Pick<ReaderContext, 'identity' | 'callIds'>) {
    this.#context = context;
  }

  get opened(): boolean {
    return this.#opened.size > 0;
  }

  /** The first of a choice has its role. */
  delta(delta: ChatDelta, logprobs: unknown = null, index = 0): ChatChunk {
    const isFirst = !this.#opened.has(index);
    this.#opened.add(index);
    const whole: ChatDelta = isFirst ? { role: 'assistant', ...delta } : delta;
    return this.#chunk({ index, delta: whole, logprobs, finish_reason: null });
  }

  /** Clients act on `tool_calls`, so it is sent exactly when there are calls and the answer was not cut. */
  finish(reason: FinishReason, anyCalls: boolean, index = 0): ChatChunk[] {
    const opening = this.#opened.has(index) ? [] : [this.delta({ content: '' }, null, index)];
    const isToolCalls = reason === 'stop' || reason === 'tool_calls';
    const agreed = isToolCalls ? (anyCalls ? 'tool_calls' : 'stop') : reason;
    return [...opening, this.#chunk({ index, delta: {}, logprobs: null, finish_reason: agreed })];
  }

  /** The id that the client sees of the next call. One that the upstream used before is another call's. */
  callId(vendorId: string | undefined): string {
    const { callIds } = this.#context;
    const index = this.calls;
    this.calls += 1;
    const own = callIds.show(vendorId, index);
    const id = this.#shownIds.has(own) ? callIds.show(undefined, index) : own;
    this.#shownIds.add(id);
    return id;
  }

  #chunk(choice: ChatChunk['choices'][number]): ChatChunk {
    const { requestId, created, model } = this.#context.identity;
    const object = 'chat.completion.chunk';
    return { id: `chatcmpl-${requestId}`, object, created, model, choices: [choice], usage: null };
  }
}

/** The parts of a turn, if they say more than the visible turn does. */
export const telling = (parts: readonly StatePart[]): readonly StatePart[] | undefined =>
  parts.some((part) => 'opaque' in part || 'phase' in part) ? parts : undefined;
