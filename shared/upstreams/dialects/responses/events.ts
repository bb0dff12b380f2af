/** Converts the answers of Responses upstreams, events or one whole response, to canonical chunks. */
import type { ChatChunk, FinishReason } from '../../../wire/chat-response.ts';
import { asRecord, isRecord, jsonText, recordsIn, type JsonRecord } from '../../../wire/json.ts';
import { nameWindowTier, standardTiers } from '../../../wire/service-tier.ts';
import type { UpstreamEvent } from '../../body-events.ts';
import { noCompaction, type AnswerReader, type AnswerReport, type ReaderContext } from '../../dialect.ts';
import { ErrorInAnswer, UpstreamFailure } from '../../exchange.ts';
import { AnswerWriter, type VendorCounts } from '../../answer-writer.ts';
import { findError } from '../../vendor-errors.ts';
import {
  itemTypes,
  OutputItems,
  readWholeText,
  readWord,
  type AnswerItem,
  type ItemEvent,
  type TextKind,
} from './output-items.ts';

/** Compatible servers send anything, so each field is checked. */
type WholeResponse = Partial<Record<ResponseField, unknown>>;
type ResponseField = 'object' | 'status' | 'output' | 'usage' | 'error' | TierField | DetailField;
type TierField = 'service_tier' | 'background' | 'background_options';
type DetailField = 'incomplete_details' | 'input_transformations';
type ResponsesEvent = JsonRecord & WholeResponse & Partial<Record<EventField, unknown>>;
type EventField = 'type' | 'response' | 'item' | 'part' | 'delta' | 'logprobs' | 'name' | 'annotation';

/** Texts that come in pieces: the type of their item, and the fields of their index and their complete text. */
const textEvents: Partial<Record<string, [item: string, kind: TextKind, place: string, whole: string]>> = {
  'response.output_text': ['message', 'text', 'content_index', 'text'],
  'response.refusal': ['message', 'refusal', 'content_index', 'refusal'],
  'response.reasoning_summary_text': ['reasoning', 'summary', 'summary_index', 'text'],
  'response.reasoning_text': ['reasoning', 'reasoning', 'content_index', 'text'],
  'response.function_call_arguments': ['function_call', 'call', '', 'arguments'],
  'response.custom_tool_call_input': ['custom_tool_call', 'call', '', 'input'],
};
/** Events with one complete content part, and the field of its index. */
const wholePartEvents: Partial<Record<string, [item: string, place: string]>> = {
  'response.content_part.done': ['message', 'content_index'],
  'response.reasoning_summary_part.done': ['reasoning', 'summary_index'],
};
const lastEvents = new Set(
  ['completed', 'incomplete', 'failed', 'cancelled', 'done'].map((end) => `response.${end}`),
);

/** Passes pieces on at once. The finish chunk comes last, after anything that only the whole response has. */
export class ResponsesReader implements AnswerReader {
  readonly #writer: AnswerWriter;
  readonly #items: OutputItems;
  #finish: FinishReason | undefined;
  #isUnderstood = false;
  /** The answer is a compacted conversation: only its compaction item counts. */
  readonly #compacts: boolean;

  constructor(context: ReaderContext) {
    this.#compacts = context.sent.compacts === true;
    this.#writer = new AnswerWriter(context);
    this.#items = new OutputItems(this.#writer, context.sent.wrappedTools);
  }

  get done(): boolean {
    return this.#finish !== undefined;
  }

  get finishedChoices(): number {
    return this.done ? 1 : 0;
  }

  report(): AnswerReport {
    return this.#writer.report(this.#items.describeTurn());
  }

  push(event: UpstreamEvent): ChatChunk[] {
    const chunks = this.#read(event);
    return this.#compacts ? [] : chunks;
  }

  #read(event: UpstreamEvent): ChatChunk[] {
    // Ignores `[DONE]`: compatible servers also send it after an answer that broke off.
    if (this.done || event.kind === 'done' || !isRecord(event.value)) return [];
    const value: ResponsesEvent = event.value;
    const { type } = value;
    if (value.object === 'response' || (type === undefined && Array.isArray(value.output)))
      return this.#readResponse(value);
    if (type === 'error' || type === 'response.error' || (type === undefined && value.error))
      throw new ErrorInAnswer(findError(value) ?? {});
    if (typeof type !== 'string' || !type.startsWith('response.')) return [];
    this.#isUnderstood = true;
    const response: WholeResponse = asRecord(value.response);
    this.#writer.noteUsage(countsOf(response.usage));
    this.#writer.noteTransformations(response.input_transformations);
    if (lastEvents.has(type)) return this.#readResponse(readLastEvent(type, value));
    if (type === 'response.output_item.added' || type === 'response.output_item.done')
      return this.#readItem(type, value);
    return this.#readContent(type, value);
  }

  end(): ChatChunk[] {
    if (!this.#finish) {
      if (this.#writer.hasOpened || this.#items.hasItems) throw new UpstreamFailure('cut');
      throw new UpstreamFailure(this.#isUnderstood ? 'empty' : 'junk');
    }
    if (this.#compacts) return this.#finishCompaction(this.#finish);
    return this.#writer.finish(this.#finish, this.#writer.callCount > 0);
  }

  /** A complete answer ends normally, however the connection ended. */
  fail(error: unknown): ChatChunk[] {
    if (this.done) return this.end();
    throw error;
  }

  #finishCompaction(finish: FinishReason): ChatChunk[] {
    const hasCompaction = this.#items
      .describeTurn()
      .some((part) => 'opaque' in part && isCompaction(part.opaque['item']));
    // A cut answer says nothing about the upstream: a filter or a limit of the caller's ended it.
    if (!hasCompaction && finish !== 'stop') return this.#writer.finish(finish, false);
    const message = 'The upstream returned no compaction.';
    if (!hasCompaction)
      throw new ErrorInAnswer({ code: noCompaction, type: 'invalid_request_error', message });
    const native = { event: { type: 'compaction' }, isContent: true };
    return [{ ...this.#writer.writeDelta({}), native }, ...this.#writer.finish(finish, false)];
  }

  #readItem(type: string, value: ResponsesEvent): ChatChunk[] {
    const source = asRecord(value.item);
    const kind = String(source['type']);
    if (!itemTypes.has(kind)) return [];
    const { outputIndex } = readItemEvent(value);
    return type === 'response.output_item.added'
      ? this.#items.startItem(this.#items.findForStart(kind, outputIndex, source), source)
      : this.#items.endItem(this.#items.findForEnd(kind, outputIndex, source), source);
  }

  #readContent(type: string, value: ResponsesEvent): ChatChunk[] {
    if (type === 'response.output_text.annotation.added') {
      const index = readIndex(value, 'content_index');
      const item = this.#findItem('message', value);
      return this.#items.showAnnotation(item, index, value.annotation, value['annotation_index']);
    }
    const wholePart = wholePartEvents[type];
    if (wholePart) {
      const [kind, place] = wholePart;
      return readWholeText(value.part, readIndex(value, place)).flatMap((whole) =>
        this.#items.showWhole(this.#findItem(whole.kind === 'reasoning' ? 'reasoning' : kind, value), whole),
      );
    }
    const dot = type.lastIndexOf('.');
    const text = textEvents[type.slice(0, dot)];
    if (!text) return [];
    const [itemType, kind, place, wholeField] = text;
    const index = readIndex(value, place);
    const { delta, logprobs, annotations } = value;
    if (type.endsWith('.delta') && typeof delta === 'string')
      return this.#items.showPiece(this.#findItem(itemType, value), { kind, index, text: delta, logprobs });
    const whole = value[wholeField];
    if (!type.endsWith('.done') || whole === undefined) return [];
    const item = this.#findItem(itemType, value);
    const named = this.#items.startItem(item, { name: value.name });
    const piece = { kind, index, text: jsonText(whole), logprobs, annotations };
    return [...named, ...this.#items.showWhole(item, piece)];
  }

  #findItem(type: string, value: ResponsesEvent): AnswerItem {
    return this.#items.findForPiece(type, readItemEvent(value));
  }

  /** Shows what no event had, and reads how the answer ended. */
  #readResponse(response: WholeResponse): ChatChunk[] {
    this.#isUnderstood = true;
    this.#writer.noteUsage(countsOf(response.usage), readTier(response));
    this.#writer.noteTransformations(response.input_transformations);
    const { reason } = asRecord(response.incomplete_details);
    // Some upstreams leave the status of a complete answer out or empty.
    const status = response.status || (reason === undefined ? undefined : 'incomplete');
    const ending = status === 'incomplete' ? this.#writer.readFinish(reason) : undefined;
    if (status === 'failed' || ending === 'failed') throw new ErrorInAnswer(findError(response) ?? {});
    if (typeof status === 'string' && status !== 'completed' && status !== 'incomplete')
      throw new UpstreamFailure('cut');
    const entries = recordsIn(response.output).filter(({ type }) => itemTypes.has(String(type)));
    const chunks = entries.flatMap((entry) => this.#items.endItem(this.#items.findForEntry(entry), entry));
    chunks.push(...this.#items.endOpenCalls(status !== 'incomplete'));
    if (status !== 'incomplete') this.#finish = 'stop';
    else this.#finish = ending === 'content_filter' ? 'content_filter' : 'length';
    return chunks;
  }
}

/** Prefers the window that the response names. The standard tier of a background response tells nothing about its window. */
function readTier({ background, background_options: options, service_tier: tier }: WholeResponse): unknown {
  const { completion_window: hours } = asRecord(options);
  if (hours === 'soonest') return 'default';
  if (typeof hours === 'string') return nameWindowTier(hours);
  return background === true && standardTiers.has(String(tier)) ? undefined : tier;
}

/** The type of a last event gives the status if the response does not. */
function readLastEvent(type: string, value: ResponsesEvent): WholeResponse {
  const response: WholeResponse = asRecord(value.response);
  const status = type === 'response.done' ? undefined : type.slice('response.'.length);
  return { ...response, status: response.status || status, error: response.error ?? value.error };
}

const isCompaction = (item: unknown): boolean => asRecord(item)['type'] === 'compaction';

const readIndex = (value: JsonRecord, field: string): number =>
  typeof value[field] === 'number' ? value[field] : 0;

const readItemEvent = ({ output_index: index, item_id: id }: JsonRecord): ItemEvent => ({
  outputIndex: typeof index === 'number' ? index : undefined,
  id: readWord(id),
});

/**
 * Source: `ResponseUsage` of OpenAI's API description. Input includes cached and written tokens, output includes
 * reasoning.
 */
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
