/** Converts the answers of Messages upstreams, events or one whole message, to canonical chunks. */
import type { ChatChunk, ChatDelta, FinishReason, ReportedUsage } from '../../../wire/chat-response.ts';
import { asRecord, isRecord, listIn } from '../../../wire/json.ts';
import type { StatePart } from '../../../wire/turn-state.ts';
import type { UpstreamEvent } from '../../body-events.ts';
import type { AnswerReader, ReaderContext } from '../../dialect.ts';
import { ErrorInAnswer, UpstreamFailure, type UpstreamError } from '../../exchange.ts';
import { AnswerWriter, serviceTierOf, UsageCounts, type VendorCounts } from '../../answer-writer.ts';
import { ContentBlocks } from './content-blocks.ts';

/** The fields that are read, of a message and of an event. Compatible endpoints send anything, so each is checked. */
type Message = Partial<Record<'role' | 'content' | 'stop_reason' | 'stop_details' | 'usage', unknown>>;
type MessagesEvent = Message &
  Partial<Record<'type' | 'index' | 'message' | 'content_block' | 'delta' | 'error', unknown>>;

/** All others are `stop`: `end_turn`, `stop_sequence`, and `pause_turn`, which a client cannot continue either. */
const stopReasons = new Map<string, FinishReason>([
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['tool_use', 'tool_calls'],
  ['refusal', 'content_filter'],
]);

export class MessagesReader implements AnswerReader {
  done = false;
  serviceTier: string | undefined;
  readonly #writer: AnswerWriter;
  readonly #blocks: ContentBlocks;
  readonly #usage = new UsageCounts();
  /** An event of this dialect came. */
  #understood = false;
  #finish: FinishReason | undefined;
  /** A message that had its content in `message_start`. It is the answer unless the events of blocks follow. */
  #early: Message | undefined;

  constructor(context: ReaderContext) {
    this.#writer = new AnswerWriter(context);
    this.#blocks = new ContentBlocks(this.#writer, context.sent.wrapped);
  }

  get usage(): ReportedUsage | undefined {
    return this.#usage.reported;
  }

  get finishedChoices(): number {
    return this.#finish === undefined ? 0 : 1;
  }

  get state(): readonly StatePart[] | undefined {
    return this.#blocks.state;
  }

  /** The end mark came, or the reason to stop and the end of every block. */
  get #whole(): boolean {
    return this.done || (this.#finish !== undefined && !this.#blocks.anyOpen);
  }

  push(event: UpstreamEvent): ChatChunk[] {
    if (this.done) return [];
    if (event.kind === 'done') {
      this.done = this.#finish !== undefined;
      return [];
    }
    if (!isRecord(event.value)) return [];
    const value: MessagesEvent = event.value;
    if (value.type !== 'error' && !isRecord(value.error)) return this.#chunks(this.#read(value));
    if (this.#whole) return [];
    throw new ErrorInAnswer(messagesError(value) ?? {});
  }

  end(): ChatChunk[] {
    const early = this.#chunks(this.#readEarly());
    const isBegun = this.#understood || this.#blocks.any;
    if (!this.#whole) throw new UpstreamFailure(isBegun ? 'cut' : 'junk');
    if (this.#finish === undefined && !this.#blocks.any) throw new UpstreamFailure('empty');
    // A client runs the calls of an answer that says it is whole.
    const isWithheld = this.#finish === 'length' || this.#finish === 'content_filter';
    if (!isWithheld && this.#blocks.anyCutCall) throw new UpstreamFailure('cut');
    const last = this.#chunks(this.#blocks.end());
    return [...early, ...last, ...this.#writer.finish(this.#finish ?? 'stop', this.#writer.calls > 0)];
  }

  /** A complete answer ends normally, however the connection ended. */
  fail(error: unknown): ChatChunk[] {
    const early = this.#chunks(this.#readEarly());
    if (this.#whole) return [...early, ...this.end()];
    throw error;
  }

  #chunks(deltas: readonly ChatDelta[]): ChatChunk[] {
    return deltas.map((delta) => this.#writer.delta(delta));
  }

  #read(value: MessagesEvent): ChatDelta[] {
    const { type, index } = value;
    switch (type) {
      case 'message_start': {
        this.#understood = true;
        const message: Message = asRecord(value.message);
        this.#readUsage(message.usage);
        if (isFilled(message.content)) this.#early = message;
        return [];
      }
      case 'content_block_start': {
        const early = this.#isAfterEarly(index) ? this.#readEarly() : [];
        return [...early, ...this.#blocks.start(index, asRecord(value.content_block))];
      }
      case 'content_block_delta':
        return this.#blocks.delta(index, asRecord(value.delta));
      case 'content_block_stop':
        return this.#blocks.stop(index);
      case 'message_delta': {
        this.#understood = true;
        this.#readUsage(value.usage);
        return [...this.#readEarly(), ...this.#stop(asRecord(value.delta))];
      }
      case 'message_stop':
        this.done = this.#understood || this.#blocks.any;
        return this.#readEarly();
      default:
        return type === 'message' || isWholeMessage(value) ? this.#readWhole(value) : [];
    }
  }

  /** An answer that is one JSON document. */
  #readWhole(value: Message): ChatDelta[] {
    this.#understood = true;
    this.#readUsage(value.usage);
    this.done = true;
    return this.#readMessage(value);
  }

  #isAfterEarly(index: unknown): boolean {
    const content = this.#early?.content;
    return Array.isArray(content) && typeof index === 'number' && index >= content.length;
  }

  /** Blocks that come with events, too, are those of the events. */
  #readEarly(): ChatDelta[] {
    const message = this.#early;
    this.#early = undefined;
    return message && !this.#blocks.any ? this.#readMessage(message) : [];
  }

  #readMessage(message: Message): ChatDelta[] {
    const deltas = listIn(message.content).flatMap((block, index) =>
      this.#blocks.start(index, asRecord(block)).concat(this.#blocks.stop(index)),
    );
    return [...deltas, ...this.#stop(message)];
  }

  /** The vendor's words about a refusal, where it gives any. */
  #stop({ stop_reason: reason, stop_details: details }: Message): ChatDelta[] {
    if (typeof reason !== 'string' || reason === '') return [];
    this.#finish = stopReasons.get(reason) ?? 'stop';
    const { explanation } = asRecord(details);
    const isExplained = reason === 'refusal' && typeof explanation === 'string' && explanation !== '';
    return isExplained ? [{ refusal: explanation }] : [];
  }

  #readUsage(value: unknown): void {
    this.#usage.push(countsOf(value));
    this.serviceTier = serviceTierOf(asRecord(value)['service_tier']) ?? this.serviceTier;
  }
}

/** An empty text is a place that the events of blocks fill. */
const isFilled = (content: unknown): boolean =>
  Array.isArray(content) && content.some((block) => asRecord(block)['text'] !== '');

/** Some endpoints leave the type out. */
const isWholeMessage = ({ role, content }: Message): boolean =>
  role === 'assistant' && Array.isArray(content);

/** `message_start` has the input, `message_delta` the output and often the input again. */
export function countsOf(usage: unknown): VendorCounts | undefined {
  if (!isRecord(usage)) return undefined;
  const lifetimes = asRecord(usage['cache_creation']);
  return {
    input: usage['input_tokens'],
    output: usage['output_tokens'],
    reasoning: asRecord(usage['output_tokens_details'])['thinking_tokens'],
    cached: usage['cache_read_input_tokens'],
    written: usage['cache_creation_input_tokens'],
    writtenForMinutes: lifetimes['ephemeral_5m_input_tokens'],
    writtenForHour: lifetimes['ephemeral_1h_input_tokens'],
    cacheIsApart: true,
  };
}

/** `{type: 'error', error: {type, message}, request_id}`. Bedrock's own errors, which the model never saw, have a `message` alone. */
export function messagesError(body: unknown): UpstreamError | undefined {
  const { error, message } = asRecord(body);
  if (isRecord(error)) {
    const { type, code, param } = error;
    return { message: error['message'], type, code, param };
  }
  if (typeof error === 'string') return { message: error };
  return typeof message === 'string' ? { message } : undefined;
}
