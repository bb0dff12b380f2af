/** The turn that an answer becomes: makes canonical chunks, and keeps the layout by which the turn can come back. */
import type {
  AnswerIdentity,
  ChatChunk,
  ChatDelta,
  ChunkChoice,
  FinishReason,
} from '../../../wire/chat-response.ts';
import { Kept } from '../../../wire/chunk-content.ts';
import type { JsonRecord } from '../../../wire/json-record.ts';
import type { StatePart } from '../../../wire/turn-state.ts';
import { UpstreamFailure } from '../../upstream-failure.ts';

/** Far more than a model writes, in any script. */
const keptBytesMax = 4 * 1024 * 1024;
/** What a part, an item or a stretch of text takes beside its text, so that empty ones are bounded too. */
export const entryBytes = 128;

/** An item's place in the layout. What is known of it may change until the answer ends. */
export interface TurnItem {
  /** `commentary` or `final_answer`, where the upstream says so. */
  phase: string | undefined;
  /** The index of its call, once clients have seen one. */
  callIndex: number | undefined;
  /** The whole item, if the vendor wants it back as it is. */
  opaque: JsonRecord | undefined;
}

interface Slot {
  item: TurnItem;
  /** Undefined for calls and opaque items. */
  text: number | undefined;
}

export class AnswerTurn {
  readonly #identity: AnswerIdentity;
  readonly #slots: Slot[] = [];
  readonly #withText = new Set<TurnItem>();
  #roleSent = false;
  /** What an answer makes the relay keep. */
  readonly kept = new Kept(keptBytesMax, () => new UpstreamFailure('too_large'));
  /** UTF-16 code units of all visible text so far. */
  contentLength = 0;
  anyReasoning = false;

  constructor(identity: AnswerIdentity) {
    this.#identity = identity;
  }

  get opened(): boolean {
    return this.#roleSent;
  }

  /** The parts in their order, if they say more than the visible turn. */
  get state(): StatePart[] | undefined {
    const parts = this.#slots.flatMap(({ item, text }): StatePart[] => {
      const { phase, opaque, callIndex } = item;
      if (text !== undefined) return [{ text, ...(phase !== undefined && { phase }) }];
      if (opaque) return [{ opaque: { item: opaque } }];
      return callIndex === undefined ? [] : [{ call: callIndex }];
    });
    return parts.some((part) => 'opaque' in part || 'phase' in part) ? parts : undefined;
  }

  /** Keeps the place of a call or an opaque item, which may be known whole only later. */
  place(item: TurnItem): void {
    this.kept.bytes(entryBytes);
    this.#slots.push({ item, text: undefined });
  }

  /** A stretch of visible text of an item. Its phase precedes its first one. */
  text(item: TurnItem, content: string, logprobs: unknown): ChatChunk[] {
    const last = this.#slots.at(-1);
    this.contentLength += content.length;
    if (last?.item === item && last.text !== undefined) {
      last.text += content.length;
      return [this.delta({ content }, logprobs)];
    }
    const isFirst = !this.#withText.has(item);
    this.#withText.add(item);
    this.kept.bytes(entryBytes);
    this.#slots.push({ item, text: content.length });
    const { phase } = item;
    const opening = isFirst && phase !== undefined ? [this.delta({ phase })] : [];
    return [...opening, this.delta({ content }, logprobs)];
  }

  delta(delta: ChatDelta, logprobs: unknown = null): ChatChunk {
    const whole: ChatDelta = this.#roleSent ? delta : { role: 'assistant', ...delta };
    this.#roleSent = true;
    return this.chunk([{ index: 0, delta: whole, logprobs, finish_reason: null }]);
  }

  finish(reason: FinishReason): ChatChunk {
    return this.chunk([{ index: 0, delta: {}, logprobs: null, finish_reason: reason }]);
  }

  chunk(choices: ChunkChoice[]): ChatChunk {
    const { requestId, created, model } = this.#identity;
    const object = 'chat.completion.chunk';
    return { id: `chatcmpl-${requestId}`, object, created, model, choices, usage: null };
  }
}
