/** Converts the answers of Responses upstreams, events or one whole response, to canonical chunks. */
import type { ChatChunk, ChatUsage, ChunkChoice, FinishReason } from '../../../wire/chat-response.ts';
import { asRecord, isRecord, type JsonRecord } from '../../../wire/json-record.ts';
import type { StatePart } from '../../../wire/turn-state.ts';
import type { UpstreamEvent } from '../../body-events.ts';
import type { AnswerReader, ReaderContext } from '../../dialect.ts';
import { ErrorInAnswer, UpstreamFailure } from '../../upstream-failure.ts';
import { responsesError } from './failure.ts';
import { readUsage, type ReadUsage } from './usage.ts';

/** Far more than a model writes. Limits the memory that an answer takes. */
const textLengthMax = 4 * 1024 * 1024;

export class ResponsesReader implements AnswerReader {
  serviceTier: string | undefined;
  readonly state: readonly StatePart[] | undefined = undefined;
  readonly #identity: ReaderContext['identity'];
  #finish: FinishReason | undefined;
  #usage: ReadUsage | undefined;
  #opened = false;
  #textLength = 0;

  constructor({ identity }: ReaderContext) {
    this.#identity = identity;
  }

  get done(): boolean {
    return this.#finish !== undefined;
  }

  get finishedChoices(): number {
    return this.done ? 1 : 0;
  }

  get usage(): ChatUsage | undefined {
    return this.#usage?.usage;
  }

  get usageClamped(): boolean {
    return this.#usage?.clamped ?? false;
  }

  push(event: UpstreamEvent): ChatChunk[] {
    if (this.done || event.kind === 'done' || !isRecord(event.value)) return [];
    const { value } = event;
    const { type } = value;
    if (type === 'error' || (type === undefined && value['error']))
      throw new ErrorInAnswer(responsesError(value) ?? {});
    if (type === 'response.output_text.delta') return this.#text(value['delta']);
    if (type === 'response.completed' || type === 'response.incomplete' || type === 'response.failed')
      this.#end(asRecord(value['response']));
    if (type === undefined && Array.isArray(value['output'])) return this.#whole(value);
    return [];
  }

  end(): ChatChunk[] {
    if (!this.#finish) throw new UpstreamFailure(this.#opened ? 'cut' : 'junk');
    const opening = this.#opened ? [] : this.#text('');
    const last = this.#chunk([{ index: 0, delta: {}, logprobs: null, finish_reason: this.#finish }]);
    return [...opening, last, ...(this.#usage ? [{ ...this.#chunk([]), usage: this.#usage.usage }] : [])];
  }

  /** A complete answer ends normally, however the connection ended. */
  fail(error: unknown): ChatChunk[] {
    if (this.done) return this.end();
    throw error;
  }

  #whole(response: JsonRecord): ChatChunk[] {
    const parts = (response['output'] as unknown[]).flatMap((item) => {
      const { content } = asRecord(item);
      return Array.isArray(content) ? content.map(asRecord) : [];
    });
    const texts = parts.filter(({ type }) => type === 'output_text').flatMap(({ text }) => this.#text(text));
    this.#end(response);
    return texts;
  }

  #end(response: JsonRecord): void {
    this.#usage = readUsage(response['usage']) ?? this.#usage;
    if (typeof response['service_tier'] === 'string') this.serviceTier = response['service_tier'];
    if (response['status'] === 'failed') throw new ErrorInAnswer(responsesError(response) ?? {});
    const { reason } = asRecord(response['incomplete_details']);
    if (response['status'] !== 'incomplete') this.#finish = 'stop';
    else this.#finish = reason === 'content_filter' ? 'content_filter' : 'length';
  }

  #text(text: unknown): ChatChunk[] {
    if (typeof text !== 'string' || (text === '' && this.#opened)) return [];
    this.#textLength += text.length;
    if (this.#textLength > textLengthMax) throw new UpstreamFailure('too_large');
    const role = this.#opened ? {} : ({ role: 'assistant' } as const);
    this.#opened = true;
    return [
      this.#chunk([{ index: 0, delta: { ...role, content: text }, logprobs: null, finish_reason: null }]),
    ];
  }

  #chunk(choices: ChunkChoice[]): ChatChunk {
    const { requestId, created, model } = this.#identity;
    const object = 'chat.completion.chunk';
    return { id: `chatcmpl-${requestId}`, object, created, model, choices, usage: null };
  }
}
