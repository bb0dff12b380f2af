/** One choice of an answer: what it said, whether it is finished, and what of it has to come back. */
import type { ChatDelta, FinishReason } from '../../../wire/chat-response.ts';
import { deltaText, GrowingText, type Kept } from '../../../wire/chunk-content.ts';
import { isRecord, type JsonRecord } from '../../../wire/json-record.ts';
import type { StatePart } from '../../../wire/turn-state.ts';
import { ErrorInAnswer } from '../../upstream-failure.ts';
import { UpstreamToolCalls, type ToolCallReading } from './calls/tool-calls.ts';
import { DetailBlocks } from './detail-blocks.ts';
import { readDelta, type DeltaReading } from './delta.ts';
import { chatError } from './failure.ts';
import { statePartsOf } from './state.ts';
import { MirroredReasoning, ThinkTags } from './think-tags.ts';

export interface ChoiceReading {
  index: number;
  thinkTags: boolean;
  /** Is asked at the first call. */
  calls: () => ToolCallReading;
  /** Of the whole answer. What is only passed on is not counted, but for text, of which no model writes so much. */
  kept: Kept;
}

export interface Said {
  delta: ChatDelta;
  logprobs: unknown;
}

export class Choice {
  readonly index: number;
  /** Undefined: not finished. */
  finish: FinishReason | undefined;
  roleSent = false;
  /** It has annotations of its own. */
  annotated = false;
  #hasContent = false;
  readonly #reading: ChoiceReading;
  #tools: UpstreamToolCalls | undefined;
  readonly #tags: { split: ThinkTags; mirrored: MirroredReasoning } | undefined;
  #details: DetailBlocks | undefined;
  #reasoning: { field: 'reasoning_content' | 'reasoning'; text: GrowingText } | undefined;
  #extra: JsonRecord | undefined;
  #textLength = 0;
  #hasSaid = false;

  constructor(reading: ChoiceReading) {
    this.index = reading.index;
    this.#reading = reading;
    this.#tags = reading.thinkTags
      ? { split: new ThinkTags(), mirrored: new MirroredReasoning() }
      : undefined;
  }

  /** Returns nothing for a choice without content. */
  push(source: JsonRecord): Said | undefined {
    if (source['finish_reason'] === 'error') throw new ErrorInAnswer(chatError(source) ?? {});
    const { delta: piece, message } = source;
    let delta = isRecord(piece) ? this.#read(readDelta(piece)) : {};
    // Perplexity has both: beside a stream's pieces the text so far, and beside a whole answer an empty piece.
    const isWhole =
      !isRecord(piece) || (!this.#hasSaid && finishReason(source['finish_reason']) !== undefined);
    if (isWhole && Object.keys(delta).length === 0 && isRecord(message))
      delta = this.#read(readDelta(message));
    this.#hasSaid ||= Object.keys(delta).length > 0;
    const logprobs = readLogprobs(source['logprobs']);
    // A chunk without text may be the beginning of an answer, which is held until its first content.
    if (logprobs !== null && deltaText(delta) === '') this.#reading.kept.value(logprobs);
    this.finish = finishReason(source['finish_reason']) ?? this.finish;
    return Object.keys(delta).length === 0 && logprobs === null ? undefined : { delta, logprobs };
  }

  /** The whole answer was read: some upstreams leave the reason out of a JSON answer, which is no less complete. */
  complete(): void {
    if (this.#hasContent) this.finish ??= 'stop';
  }

  /** What is still to say when the answer ends, and why it ended. */
  end(): { deltas: ChatDelta[]; reason: FinishReason } {
    const reason = this.finish ?? 'stop';
    const calls = this.#tools?.end(reason === 'stop' || reason === 'tool_calls') ?? [];
    const texts = this.#heldTexts();
    return {
      deltas: [texts, calls.length > 0 ? { tool_calls: calls } : {}].filter((d) => Object.keys(d).length > 0),
      reason: agree(reason, (this.#tools?.shown ?? 0) > 0),
    };
  }

  /** What is still held because it may be the beginning of a tag. */
  #heldTexts(): ChatDelta {
    if (!this.#tags) return {};
    const { split, mirrored } = this.#tags;
    const { content, reasoning } = split.end();
    this.#textLength += content.length;
    return textDelta({ content, reasoning: mirrored.push('tags', reasoning), refusal: '' });
  }

  get state(): StatePart[] | undefined {
    return statePartsOf({
      reasoning: this.#reasoning && { ...this.#reasoning, text: this.#reasoning.text.text },
      details: this.#details?.blocks ?? [],
      extra: this.#stateOfTurn(),
      callExtras: this.#tools?.extras ?? new Map<number, JsonRecord>(),
      textLength: this.#textLength,
      calls: this.#tools?.shown ?? 0,
    });
  }

  #stateOfTurn(): JsonRecord | undefined {
    const loose = this.#tools?.looseExtra;
    return loose || this.#extra ? { ...loose, ...this.#extra } : undefined;
  }

  #read(read: DeltaReading): ChatDelta {
    this.#keep(read);
    this.annotated ||= read.annotations.length > 0;
    const calls = read.calls.length > 0 ? this.#calls().push(read.calls) : [];
    return {
      ...textDelta({ ...this.#texts(read), refusal: read.refusal }),
      ...(read.details.length > 0 && { reasoning_details: read.details }),
      ...(calls.length > 0 && { tool_calls: calls }),
      ...(read.annotations.length > 0 && { annotations: read.annotations }),
      ...(read.images.length > 0 && { images: read.images }),
    };
  }

  #calls(): UpstreamToolCalls {
    this.#tools ??= new UpstreamToolCalls(this.#reading.calls());
    return this.#tools;
  }

  #texts({ content, reasoning }: DeltaReading): { content: string; reasoning: string } {
    if (!this.#tags) {
      this.#textLength += content.length;
      return { content, reasoning };
    }
    const { split, mirrored } = this.#tags;
    const texts = split.push(content);
    this.#textLength += texts.content.length;
    const inField = mirrored.push('field', reasoning);
    return { content: texts.content, reasoning: inField + mirrored.push('tags', texts.reasoning) };
  }

  #keep(read: DeltaReading): void {
    const { content, reasoning, reasoningField, refusal, details, extra, calls, images } = read;
    const { kept } = this.#reading;
    const text = content + reasoning + refusal;
    kept.text(text);
    this.#hasContent ||= text !== '' || calls.length > 0 || images.length > 0;
    // State is kept of the first choice: it is the one that a client continues with.
    if (this.index !== 0) return;
    if (details.length > 0) {
      this.#details ??= new DetailBlocks(kept);
      this.#details.push(details);
    }
    if (extra) {
      kept.value(extra);
      this.#extra = { ...this.#extra, ...extra };
    }
    if (reasoning === '') return;
    this.#reasoning ??= { field: reasoningField, text: new GrowingText() };
    this.#reasoning.text.add(reasoning);
  }
}

function textDelta({
  content,
  reasoning,
  refusal,
}: Record<'content' | 'reasoning' | 'refusal', string>): ChatDelta {
  return {
    ...(content !== '' && { content }),
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(refusal !== '' && { refusal }),
  };
}

const knownReasons = new Map<string, FinishReason>(
  Object.entries({
    stop: 'stop',
    length: 'length',
    max_tokens: 'length',
    model_length: 'length',
    tool_calls: 'tool_calls',
    tool_use: 'tool_calls',
    function_call: 'tool_calls',
    content_filter: 'content_filter',
    safety: 'content_filter',
    refusal: 'content_filter',
  } as const),
);

/** Undefined for null and empty: the choice continues. An unknown reason counts as `stop`. */
function finishReason(value: unknown): FinishReason | undefined {
  if (typeof value !== 'string' || value === '') return undefined;
  return knownReasons.get(value.toLowerCase()) ?? 'stop';
}

/** Clients act on `tool_calls`, so it is sent exactly when there are calls and the answer was not cut. */
function agree(reason: FinishReason, anyToolCalls: boolean): FinishReason {
  if (anyToolCalls) return reason === 'stop' ? 'tool_calls' : reason;
  return reason === 'tool_calls' ? 'stop' : reason;
}

function readLogprobs(value: unknown): unknown {
  if (!isRecord(value)) return null;
  return { content: value['content'] ?? null, refusal: value['refusal'] ?? null };
}
