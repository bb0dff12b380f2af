/** Converts the answers of Messages upstreams, events or one whole message, to canonical chunks. */
import type { ChatChunk, ChatDelta, ChatUsage, FinishReason } from '../../../wire/chat-response.ts';
import { asRecord, isRecord, type JsonRecord } from '../../../wire/json-record.ts';
import type { StatePart } from '../../../wire/turn-state.ts';
import type { UpstreamEvent } from '../../body-events.ts';
import type { AnswerReader, ReaderContext } from '../../dialect.ts';
import { ErrorInAnswer, UpstreamFailure } from '../../upstream-failure.ts';
import { messagesError } from './failure.ts';
import { MessagesUsage } from './usage.ts';

const reasons = new Map<string, FinishReason>([
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['tool_use', 'tool_calls'],
  ['refusal', 'content_filter'],
]);

export class MessagesReader implements AnswerReader {
  done = false;
  readonly state: readonly StatePart[] | undefined = undefined;
  readonly #context: ReaderContext;
  readonly #usage = new MessagesUsage();
  #roleSent = false;
  #understood = false;
  #finish: FinishReason | undefined;

  constructor(context: ReaderContext) {
    this.#context = context;
  }

  get usage(): ChatUsage | undefined {
    return this.#usage.usage;
  }

  get usageClamped(): boolean {
    return this.#usage.clamped;
  }

  get finishedChoices(): number {
    return this.#finish ? 1 : 0;
  }

  push(event: UpstreamEvent): ChatChunk[] {
    if (this.done || event.kind === 'done' || !isRecord(event.value)) return [];
    const value = event.value;
    switch (value['type']) {
      case 'message_start':
        this.#understood = true;
        this.#usage.push(asRecord(value['message'])['usage']);
        return [];
      case 'content_block_delta':
        return this.#text(asRecord(value['delta'])['text']);
      case 'message_delta':
        this.#stop(asRecord(value['delta'])['stop_reason']);
        this.#usage.push(value['usage']);
        return [];
      case 'message_stop':
        this.done = true;
        return [];
      case 'message':
        return this.#whole(value);
      case 'error':
        throw new ErrorInAnswer(messagesError(value) ?? {});
      default:
        return [];
    }
  }

  end(): ChatChunk[] {
    if (!this.#finish) throw new UpstreamFailure(this.#understood ? 'cut' : 'junk');
    const opening = this.#roleSent ? [] : this.#delta({ content: '' });
    const finish = { index: 0, delta: {}, logprobs: null, finish_reason: this.#finish };
    const last = [...opening, this.#chunk([finish])];
    return this.usage ? [...last, { ...this.#chunk([]), usage: this.usage }] : last;
  }

  fail(error: unknown): ChatChunk[] {
    if (this.#finish) return this.end();
    throw error;
  }

  #whole(value: JsonRecord): ChatChunk[] {
    const blocks: unknown[] = Array.isArray(value['content']) ? value['content'] : [];
    this.#stop(value['stop_reason'] ?? 'end_turn');
    this.#usage.push(value['usage']);
    this.done = true;
    return blocks.flatMap((block) => this.#text(asRecord(block)['text']));
  }

  #text(text: unknown): ChatChunk[] {
    this.#understood = true;
    return typeof text === 'string' && text !== '' ? this.#delta({ content: text }) : [];
  }

  #stop(reason: unknown): void {
    if (typeof reason === 'string') this.#finish = reasons.get(reason) ?? 'stop';
  }

  #delta(delta: ChatDelta): ChatChunk[] {
    const whole: ChatDelta = this.#roleSent ? delta : { role: 'assistant', ...delta };
    this.#roleSent = true;
    return [this.#chunk([{ index: 0, delta: whole, logprobs: null, finish_reason: null }])];
  }

  #chunk(choices: ChatChunk['choices']): ChatChunk {
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
