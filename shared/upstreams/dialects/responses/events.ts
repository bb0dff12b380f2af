/** Converts the answers of Responses upstreams, events or one whole response, to canonical chunks. */
import type { ChatChunk, FinishReason, ReportedUsage } from '../../../wire/chat-response.ts';
import { asRecord, isRecord, jsonText, recordsIn, type JsonRecord } from '../../../wire/json.ts';
import type { StatePart } from '../../../wire/turn-state.ts';
import type { UpstreamEvent } from '../../body-events.ts';
import type { AnswerReader, ReaderContext } from '../../dialect.ts';
import { ErrorInAnswer, UpstreamFailure, type UpstreamError } from '../../exchange.ts';
import { serviceTierOf, UsageCounts, type VendorCounts, AnswerWriter } from '../../answer-writer.ts';
import {
  callTypes,
  opaqueTypes,
  OutputItems,
  textOf,
  type AnswerItem,
  type ItemEvent,
  type TextKind,
} from './output-items.ts';
import { agrees, ItemReader, wholeOfPart } from './item-reader.ts';

/** The fields that are read, of a whole response and of an event. Compatible servers send anything, so each is checked. */
type WholeResponse = Partial<
  Record<'object' | 'status' | 'output' | 'usage' | 'service_tier' | 'incomplete_details' | 'error', unknown>
>;
type ResponsesEvent = JsonRecord & WholeResponse & Partial<Record<EventField, unknown>>;
type EventField = 'type' | 'response' | 'item' | 'part' | 'delta' | 'logprobs' | 'name' | PlaceField;
type PlaceField =
  | 'item_id'
  | 'output_index'
  | 'content_index'
  | 'summary_index'
  | 'annotation'
  | 'annotation_index';

/** The texts that come in pieces: of which item, and where their place in it and their whole stand. */
const texts: Partial<Record<string, { item: string; kind: TextKind; place: string; whole: string }>> = {
  'response.output_text': { item: 'message', kind: 'text', place: 'content_index', whole: 'text' },
  'response.refusal': { item: 'message', kind: 'refusal', place: 'content_index', whole: 'refusal' },
  'response.reasoning_summary_text': {
    item: 'reasoning',
    kind: 'summary',
    place: 'summary_index',
    whole: 'text',
  },
  'response.reasoning_text': { item: 'reasoning', kind: 'reasoning', place: 'content_index', whole: 'text' },
  'response.function_call_arguments': { item: 'function_call', kind: 'call', place: '', whole: 'arguments' },
  'response.custom_tool_call_input': { item: 'custom_tool_call', kind: 'call', place: '', whole: 'input' },
};
/** The events that hold one whole part, by the field with its place. */
const parts: Partial<Record<string, { item: string; place: string }>> = {
  'response.content_part.done': { item: 'message', place: 'content_index' },
  'response.reasoning_summary_part.done': { item: 'reasoning', place: 'summary_index' },
};
/** Items with content. Those of tools that run at the upstream have none. */
const itemTypes = new Set([...callTypes, ...opaqueTypes, 'message', 'image_generation_call']);
const lastEvents = new Set(
  ['completed', 'incomplete', 'failed', 'cancelled', 'done'].map((end) => `response.${end}`),
);

/**
 * Pieces are passed on at once. The finish chunk comes at the end, after what the whole response holds beyond the
 * pieces.
 */
export class ResponsesReader implements AnswerReader {
  serviceTier: string | undefined;
  readonly #writer: AnswerWriter;
  readonly #items: OutputItems;
  readonly #reader: ItemReader;
  #finish: FinishReason | undefined;
  readonly #usage = new UsageCounts();
  #understood = false;

  constructor(context: ReaderContext) {
    this.#writer = new AnswerWriter(context);
    this.#items = new OutputItems(this.#writer);
    this.#reader = new ItemReader(this.#items, this.#writer, context.sent.wrapped);
  }

  get done(): boolean {
    return this.#finish !== undefined;
  }

  get finishedChoices(): number {
    return this.done ? 1 : 0;
  }

  get usage(): ReportedUsage | undefined {
    return this.#usage.reported;
  }

  get state(): readonly StatePart[] | undefined {
    return this.#items.state;
  }

  push(event: UpstreamEvent): ChatChunk[] {
    // `[DONE]` says nothing here: compatible servers also send it after an answer that broke off.
    if (this.done || event.kind === 'done' || !isRecord(event.value)) return [];
    const value: ResponsesEvent = event.value;
    const { type } = value;
    if (value.object === 'response' || (type === undefined && Array.isArray(value.output)))
      return this.#last(value);
    if (type === 'error' || type === 'response.error' || (type === undefined && value.error))
      throw new ErrorInAnswer(responsesError(value) ?? {});
    if (typeof type !== 'string' || !type.startsWith('response.')) return [];
    this.#understood = true;
    this.#usage.push(countsOf(asRecord(value.response)['usage']));
    if (lastEvents.has(type)) return this.#last(lastResponse(type, value));
    if (type === 'response.output_item.added' || type === 'response.output_item.done')
      return this.#item(type, value);
    return this.#content(type, value);
  }

  end(): ChatChunk[] {
    if (!this.#finish) {
      if (this.#writer.opened || this.#items.all.length > 0) throw new UpstreamFailure('cut');
      throw new UpstreamFailure(this.#understood ? 'empty' : 'junk');
    }
    return this.#writer.finish(this.#finish, this.#writer.calls > 0);
  }

  /** A complete answer ends normally, however the connection ended. */
  fail(error: unknown): ChatChunk[] {
    if (this.done) return this.end();
    throw error;
  }

  #item(type: string, value: ResponsesEvent): ChatChunk[] {
    const source = asRecord(value.item);
    const kind = String(source['type']);
    if (!itemTypes.has(kind)) return [];
    if (type === 'response.output_item.added')
      return this.#reader.start(this.#items.ofStart(kind, itemEvent(value), source), source);
    return this.#reader.end(this.#items.ofEnd(kind, itemEvent(value), source), source);
  }

  #content(type: string, value: ResponsesEvent): ChatChunk[] {
    if (type === 'response.output_text.annotation.added') {
      const { annotation: note, annotation_index: place } = value;
      const item = this.#of('message', value);
      return this.#reader.annotation(item, placeOf(value, 'content_index'), note, place);
    }
    const part = parts[type];
    if (part)
      return wholeOfPart(value.part, placeOf(value, part.place)).flatMap((whole) =>
        this.#reader.whole(this.#of(whole.kind === 'reasoning' ? 'reasoning' : part.item, value), whole),
      );
    const dot = type.lastIndexOf('.');
    const text = texts[type.slice(0, dot)];
    if (!text) return [];
    const { kind } = text;
    const index = placeOf(value, text.place);
    const { delta, logprobs } = value;
    if (type.endsWith('.delta') && typeof delta === 'string')
      return this.#reader.piece(this.#of(text.item, value), { kind, index, text: delta, logprobs });
    const whole = value[text.whole];
    if (!type.endsWith('.done') || whole === undefined) return [];
    const item = this.#of(text.item, value);
    const named = this.#reader.start(item, { name: value.name });
    return [...named, ...this.#reader.whole(item, { kind, index, text: jsonText(whole), part: value })];
  }

  #of(type: string, value: ResponsesEvent): AnswerItem {
    return this.#items.ofPiece(type, itemEvent(value));
  }

  /** The whole response: shows what no event had, and reads how the answer ended. */
  #last(response: WholeResponse): ChatChunk[] {
    this.#understood = true;
    this.#usage.push(countsOf(response.usage));
    this.serviceTier = serviceTierOf(response.service_tier);
    const { output } = response;
    const { reason } = asRecord(response.incomplete_details);
    // Some upstreams leave the status of a whole answer out or empty.
    const status = response.status || (reason === undefined ? undefined : 'incomplete');
    if (status === 'failed') throw new ErrorInAnswer(responsesError(response) ?? {});
    if (typeof status === 'string' && status !== 'completed' && status !== 'incomplete')
      throw new UpstreamFailure('cut');
    const chunks = recordsIn(output).flatMap((entry) => {
      if (!itemTypes.has(String(entry['type']))) return [];
      const item = this.#items.ofEntry(entry, (each) => agrees(each, entry));
      return this.#reader.end(item, entry);
    });
    chunks.push(...this.#reader.last(status !== 'incomplete'));
    if (status !== 'incomplete') this.#finish = 'stop';
    else this.#finish = reason === 'content_filter' ? 'content_filter' : 'length';
    return chunks;
  }
}

/** The response of a last event. Its type says the status where the response does not. */
function lastResponse(type: string, value: ResponsesEvent): WholeResponse {
  const response: WholeResponse = asRecord(value.response);
  const status = type === 'response.done' ? undefined : type.slice('response.'.length);
  return { ...response, status: response.status || status, error: response.error ?? value.error };
}

const placeOf = (value: JsonRecord, field: string): number =>
  typeof value[field] === 'number' ? value[field] : 0;

const itemEvent = ({ output_index: index, item_id: id }: ResponsesEvent): ItemEvent => ({
  outputIndex: typeof index === 'number' ? index : undefined,
  id: textOf(id),
});

/** Source: `ResponseUsage` of OpenAI's API description. Input counts what was read from and written to the cache, output counts reasoning. */
export function countsOf(usage: unknown): VendorCounts | undefined {
  if (!isRecord(usage)) return undefined;
  const details = asRecord(usage['input_tokens_details']);
  return {
    input: usage['input_tokens'],
    output: usage['output_tokens'],
    total: usage['total_tokens'],
    reasoning: asRecord(usage['output_tokens_details'])['reasoning_tokens'],
    cached: details['cached_tokens'],
    written: details['cache_write_tokens'],
  };
}

/**
 * The error in a body, an error event or a failed response: `{error: {message, type, param, code}}`, the same object without its wrapper in events of type `error`, or
 * `{message}` and `{detail}` of gateways in front of the API.
 */
export function responsesError(body: unknown): UpstreamError | undefined {
  const { error, message, detail, code, param, type } = asRecord(Array.isArray(body) ? body[0] : body);
  if (isRecord(error)) {
    const { message: inner, type: kind, code: innerCode, param: innerParam } = error;
    return { message: inner, type: kind, code: innerCode, param: innerParam };
  }
  if (typeof error === 'string') return { message: error, code };
  // The type of such an event says only that it is one.
  if (typeof message === 'string') return { message, type: type === 'error' ? undefined : type, code, param };
  return typeof detail === 'string' ? { message: detail } : undefined;
}
