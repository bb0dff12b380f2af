/**
 * Converts the answers of Chat Completions upstreams, chunks or one whole completion, to canonical chunks.
 */
import {
  type ChatChunk,
  type ChatDelta,
  type ChunkChoice,
  type ReportedUsage,
  Kept,
  type FinishReason,
  deltaText,
  GrowingText,
} from '../../../wire/chat-response.ts';
import { isRecord, type JsonRecord } from '../../../wire/json.ts';
import type { StatePart } from '../../../wire/turn-state.ts';
import type { UpstreamEvent } from '../../body-events.ts';
import type { AnswerReader, ReaderContext } from '../../dialect.ts';
import { ErrorInAnswer, UpstreamFailure } from '../../exchange.ts';
import { serviceTierOf, UsageCounts } from '../../usage-counts.ts';
import { DeclaredNames, UpstreamToolCalls, type ToolCallReading } from './tool-calls.ts';
import {
  errorOfEvent,
  citationsOfEvent,
  countsOfEvent,
  readDelta,
  type DeltaReading,
  chatError,
} from './delta.ts';
import { DetailBlocks, statePartsOf } from './state.ts';
import { MirroredReasoning, ThinkTags } from './think-tags.ts';

/** Far more than a model writes, in any script. */
const keptBytesMax = 4 * 1024 * 1024;
const tooLarge = (): UpstreamFailure => new UpstreamFailure('too_large');
const choicesMax = 128;

/**
 * Deltas are passed on at once; the first of each choice gets the role. At the end comes a finish chunk for
 * each choice. Finish reasons are held until then, because some upstreams send more after them.
 */
export class ChatReader implements AnswerReader {
  done = false;
  serviceTier: string | undefined;
  readonly #context: ReaderContext;
  #names: DeclaredNames | undefined;
  readonly #choices = new Map<number, Choice>();
  readonly #shownIds = new Set<string>();
  #callsShown = 0;
  readonly #usage = new UsageCounts();
  #understood = false;
  /** The last event with `citations` of its own, which each event repeats, longer or not. */
  #cited: JsonRecord | undefined;
  readonly #kept = new Kept(keptBytesMax, tooLarge);

  constructor(context: ReaderContext) {
    this.#context = context;
  }

  get usage(): ReportedUsage | undefined {
    return this.#usage.reported;
  }

  get state(): readonly StatePart[] | undefined {
    return this.#choices.get(0)?.state;
  }

  /** Whether the answer is complete: every choice has its finish reason, or `[DONE]` was read. */
  get #whole(): boolean {
    return this.done || (this.#choices.size > 0 && this.finishedChoices === this.#choices.size);
  }

  get finishedChoices(): number {
    let finished = 0;
    for (const { finish } of this.#choices.values()) if (finish) finished += 1;
    return finished;
  }

  push(event: UpstreamEvent): ChatChunk[] {
    if (this.done) return [];
    if (event.kind === 'done') {
      this.done = true;
      return [];
    }
    const { value } = event;
    if (!isRecord(value)) return [];
    const error = this.#whole ? undefined : errorOfEvent(value);
    if (error) throw new ErrorInAnswer(error);
    this.#usage.push(countsOfEvent(value));
    const { service_tier: tier, choices, citations } = value;
    this.serviceTier = serviceTierOf(tier) ?? this.serviceTier;
    if (Array.isArray(citations) && citations.length > 0) this.#cited = value;
    if (!Array.isArray(choices)) return [];
    this.#understood = true;
    const chunks = choices.flatMap((choice: unknown, position) =>
      isRecord(choice) ? this.#pushChoice(choice, position) : [],
    );
    if (event.isWhole) for (const choice of this.#choices.values()) choice.complete();
    return chunks;
  }

  end(): ChatChunk[] {
    if (!this.#whole) {
      if (this.#choices.size > 0) throw new UpstreamFailure('cut');
      throw new UpstreamFailure(this.#understood ? 'empty' : 'junk');
    }
    if (this.#choices.size === 0) throw new UpstreamFailure('empty');
    const choices = [...this.#choices.values()].toSorted((a, b) => a.index - b.index);
    return choices.flatMap((choice) => this.#citations(choice).concat(this.#finish(choice)));
  }

  /** A complete answer ends normally, however the connection ended. */
  fail(error: unknown): ChatChunk[] {
    if (this.#whole) return this.end();
    throw error;
  }

  #pushChoice(source: JsonRecord, position: number): ChatChunk[] {
    const choice = this.#choice(typeof source['index'] === 'number' ? source['index'] : position);
    const said = choice.push(source);
    return said ? [this.#delta(choice, said.delta, said.logprobs)] : [];
  }

  #choice(index: number): Choice {
    const known = this.#choices.get(index);
    if (known) return known;
    if (this.#choices.size >= choicesMax) throw tooLarge();
    const { quirks, sent } = this.#context;
    const kept = this.#kept;
    const choice = new Choice({
      index,
      thinkTags: quirks.thinkTags,
      calls: () => ({
        showId: (id) => this.#showId(id),
        names: (this.#names ??= DeclaredNames.of(sent.body)),
        wrapped: sent.wrapped,
        kept,
      }),
      kept,
    });
    this.#choices.set(index, choice);
    return choice;
  }

  /** An id that the upstream repeats in the answer is replaced. */
  #showId(vendorId: string | undefined): string {
    const { callIds } = this.#context;
    const index = this.#callsShown;
    this.#callsShown += 1;
    const own = callIds.show(vendorId, index);
    const id = this.#shownIds.has(own) ? callIds.show(undefined, index) : own;
    this.#shownIds.add(id);
    return id;
  }

  /** Perplexity and xAI cite beside the choices, which are answers to one question; others in the message, and some in both. */
  #citations(choice: Choice): ChatChunk[] {
    const annotations = this.#cited && !choice.annotated ? citationsOfEvent(this.#cited) : [];
    if (annotations.length === 0) return [];
    this.#kept.value(annotations);
    return [this.#delta(choice, { annotations }, null)];
  }

  #finish(choice: Choice): ChatChunk[] {
    const { deltas, reason } = choice.end();
    const said = deltas.map((delta) => this.#delta(choice, delta, null));
    const opening = choice.roleSent ? [] : [this.#delta(choice, { content: '' }, null)];
    const finish = { index: choice.index, delta: {}, logprobs: null, finish_reason: reason };
    return [...said, ...opening, this.#chunk([finish])];
  }

  #delta(choice: Choice, delta: ChatDelta, logprobs: unknown): ChatChunk {
    const whole: ChatDelta = choice.roleSent ? delta : { role: 'assistant', ...delta };
    choice.roleSent = true;
    return this.#chunk([{ index: choice.index, delta: whole, logprobs, finish_reason: null }]);
  }

  #chunk(choices: ChunkChoice[]): ChatChunk {
    const { requestId, created, model } = this.#context.identity;
    return {
      id: `chatcmpl-${requestId}`,
      object: 'chat.completion.chunk',
      created,
      model,
      choices,
      usage: null,
    };
  }
}

// One choice of an answer: what it said, whether it is finished, and what of it has to come back.

interface ChoiceReading {
  index: number;
  thinkTags: boolean;
  /** Is asked at the first call. */
  calls: () => ToolCallReading;
  /** Of the whole answer. What is only passed on is not counted, but for text, of which no model writes so much. */
  kept: Kept;
}

interface Said {
  delta: ChatDelta;
  logprobs: unknown;
}

class Choice {
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
