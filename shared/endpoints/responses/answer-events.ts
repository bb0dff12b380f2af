/** Turns the canonical chunks of an answer into the events of Responses. */
import type { Machine } from '../../stream/machine.ts';
import {
  type Annotation,
  type ChatChunk,
  type ChatDelta,
  type ChatUsage,
  deltaText,
  type ToolCallDelta,
  GrowingText,
} from '../../wire/chat-response.ts';
import { InvalidRequest, type ErrorObject } from '../../wire/invalid-request.ts';
import { asRecord, listIn, recordsIn, type JsonRecord } from '../../wire/json.ts';
import { type AnswerFacts, type SentFacts, createKeptForAnswer } from '../endpoint.ts';
import { refuseMissingSummary } from './compaction.ts';
import {
  type ResponseObject,
  buildFinishedResponse,
  incompleteReason,
  buildResponseError,
} from './response-object.ts';
import {
  CallWriter,
  CompactionWriter,
  type DeclaredTool,
  ItemQueue,
  MessageWriter,
  ReasoningWriter,
  type ResponsesEvent,
  type TokenLogprob,
  type TopLogprob,
} from './answer-items.ts';

/** Bytes that a piece, an item and a part of a message take beside their text, until the item is done. */
const pieceBytes = 16;
const itemBytes = 1024;
const partBytes = 512;
/**
 * How much of seals, in characters, one answer has before its end. Each seal holds the state so far, since clients may
 * keep the last one alone: without a bound they would grow with the square of an answer that reasons again and again.
 */
const sealsLengthMax = 128 * 1024;

interface AskedAnswer {
  started: ResponseObject;
  /** The fields of the request that are repeated in the answer, as they are in force. */
  echo: (sent: SentFacts) => JsonRecord;
  declared: ReadonlyMap<string, DeclaredTool>;
  summary: boolean;
  keepsState: boolean;
  logprobs: boolean;
  /** The answer is one compaction item: its upstream's, or with the text as a summary. */
  compacts: boolean;
}

/**
 * Converts the canonical stream of one choice to the events of a Responses stream: created in_progress (item
 * event | in_progress)* (completed | failed). Text after a call or after reasoning is a message of its own. Throws an
 * InvalidRequest for an image, which no item can hold.
 *
 * The state of the turn stands, sealed, in a reasoning item before the text or the call that it led to, as far as it is
 * known by then; what comes later is in an item after it. Each seal holds the state so far, and the last one all of it.
 */
export class ChatToResponses implements Machine<ChatChunk, ResponsesEvent> {
  readonly #asked: AskedAnswer;
  readonly #facts: AnswerFacts;
  readonly #kept = createKeptForAnswer();
  readonly #queue = new ItemQueue();
  /** The response object of the opening events; undefined before them. */
  #opened: ResponseObject | undefined;
  /** The index of the first choice, which alone is shown. Some upstreams count their choices from 1. */
  #choice: number | undefined;
  #finish = 'stop';
  #usage: ChatUsage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
  #quota: number | undefined;
  /** Unix seconds; undefined: the items are not closed yet. */
  #endedAt: number | undefined;
  readonly #calls = new Map<number, CallWriter>();
  #annotations: Annotation[] = [];
  #phase: string | undefined;
  #part: 'text' | 'refusal' | undefined;
  /** The number of opaque parts that the last seal has, or will have when its item closes. */
  #sealedParts = 0;
  #sealsLength = 0;
  /** Reasoning came after the last seal. It may lengthen an opaque part. */
  #reasonedSince = false;
  #ending = false;
  readonly #summary = new GrowingText();
  /** The upstream compacted the conversation in its own way. */
  #isCompacted = false;

  constructor(asked: AskedAnswer, facts: AnswerFacts) {
    this.#asked = asked;
    this.#facts = facts;
  }

  /** The two events that open the stream; none if they were sent already. */
  start(): ResponsesEvent[] {
    if (this.#opened) return [];
    this.#opened = this.#response();
    return [{ type: 'response.created', response: this.#opened }, this.inProgress()];
  }

  inProgress(): ResponsesEvent {
    return { type: 'response.in_progress', response: this.#opened };
  }

  push(chunk: ChatChunk): ResponsesEvent[] {
    if (chunk.usage) this.#usage = chunk.usage;
    if (typeof chunk.quota === 'number') this.#quota = chunk.quota;
    const shown = chunk.choices.filter(({ index }) => index === (this.#choice ??= index));
    if (shown.some(({ delta }) => (delta.images?.length ?? 0) > 0)) throw refuseImage();
    const events = this.start();
    for (const { delta, logprobs, finish_reason: finish } of shown) {
      if (finish) this.#finish = finish;
      if (this.#asked.compacts) {
        this.#kept.text(delta.content ?? '');
        this.#summary.add(delta.content ?? '');
        this.#isCompacted ||= chunk.native !== undefined;
        continue;
      }
      const known = this.#asked.logprobs && logprobs !== null ? toTokenLogprobs(logprobs) : [];
      events.push(...this.#pushDelta(delta, known));
    }
    return events;
  }

  close(): ResponsesEvent[] {
    const events = [...this.start(), ...this.#endItems()];
    this.#endedAt ??= this.#facts.now();
    return events;
  }

  /** The response as the last event has it: valid from `close` on, or at any time with the error that it fails with. */
  whole(error?: ErrorObject): ResponseObject {
    const { output } = this.#queue;
    if (error) return { ...this.#response(), status: 'failed', output, error: buildResponseError(error) };
    return buildFinishedResponse(this.#response(), {
      output,
      usage: this.#usage,
      finish: this.#finish,
      quota: this.#quota,
      endedAt: this.#endedAt ?? this.#facts.now(),
    });
  }

  renderQueued(): ResponseObject {
    return { ...this.#response(), status: 'queued' };
  }

  end(): ResponsesEvent[] {
    const events = this.#endedAt === undefined ? this.close() : [];
    return [...events, { type: 'response.completed', response: this.whole() }];
  }

  /** Does not close open items: a client would run an incomplete call that is marked as done. */
  renderFailure(error: ErrorObject): ResponsesEvent[] {
    const response = this.whole(error);
    return [...this.start(), { type: 'response.failed', response, error: response.error }];
  }

  #response(): ResponseObject {
    const { started, echo } = this.#asked;
    const model = this.#facts.model?.() ?? started.model;
    return { ...started, model, ...echo(this.#facts.sent()), store: this.#facts.stored?.() ?? false };
  }

  #pushDelta(delta: ChatDelta, logprobs: TokenLogprob[]): ResponsesEvent[] {
    this.#kept.bytes(pieceBytes);
    this.#kept.text(deltaText(delta));
    for (const each of [logprobs, delta.annotations]) if (each && each.length > 0) this.#kept.value(each);
    this.#phase = delta.phase ?? this.#phase;
    const events: ResponsesEvent[] = [];
    if (delta.reasoning_content || delta.reasoning_details) this.#reasonedSince = true;
    if (delta.reasoning_content && this.#asked.summary)
      events.push(...this.#reasoning(delta.reasoning_content));
    if (delta.content) events.push(...this.#text(delta.content, logprobs));
    if (delta.refusal) events.push(...this.#refusal(delta.refusal));
    for (const annotation of delta.annotations ?? []) events.push(...this.#annotation(annotation));
    for (const piece of delta.tool_calls ?? []) events.push(...this.#call(piece));
    return events;
  }

  #reasoning(text: string): ResponsesEvent[] {
    const { last } = this.#queue;
    if (last instanceof ReasoningWriter) return this.#queue.write(last, last.summary(text));
    const { item, events } = this.#openReasoning();
    return [...events, ...this.#queue.write(item, item.summary(text))];
  }

  #text(text: string, logprobs: TokenLogprob[]): ResponsesEvent[] {
    const { item, events } = this.#message('text');
    const said = item.text(text, logprobs);
    const annotations = this.#annotations.splice(0).flatMap((each) => item.annotate(each));
    return [...events, ...this.#queue.write(item, [...said, ...annotations])];
  }

  #refusal(text: string): ResponsesEvent[] {
    const { item, events } = this.#message('refusal');
    return [...events, ...this.#queue.write(item, item.refusal(text))];
  }

  #annotation(annotation: Annotation): ResponsesEvent[] {
    const { last } = this.#queue;
    if (last instanceof MessageWriter) return this.#queue.write(last, last.annotate(annotation));
    this.#annotations.push(annotation);
    return [];
  }

  /** A piece of a call that is done already says nothing: its arguments were complete. */
  #call({ index, id = '', type, function: called, custom }: ToolCallDelta): ResponsesEvent[] {
    const text = called?.arguments ?? custom?.input ?? '';
    const known = this.#calls.get(index);
    if (known) return this.#queue.has(known) ? this.#queue.write(known, known.input(text)) : [];
    const state = this.#stateBefore();
    const name = called?.name ?? custom?.name ?? '';
    const declared = this.#asked.declared.get(name) ?? { name, namespace: undefined, isAsync: false };
    const isAsync = declared.isAsync && !this.#facts.sent().dropped.includes('async');
    const tool = { ...declared, kind: type ?? 'function', isAsync };
    const call = new CallWriter(this.#suffix, this.#nextIndex(), id, tool);
    this.#calls.set(index, call);
    return [...state, ...this.#queue.add(call), ...this.#queue.write(call, call.input(text))];
  }

  /** Closes all items; then comes the state that no item has yet. */
  #endItems(): ResponsesEvent[] {
    if (this.#asked.compacts) return this.#compaction();
    const cut = incompleteReason(this.#finish) !== undefined;
    const phase = this.#finish === 'tool_calls' ? 'commentary' : 'final_answer';
    this.#ending = true;
    const events = this.#queue.end(cut ? { status: 'incomplete' } : { status: 'completed', phase });
    const state = this.#stateBefore();
    if (state.length === 0) return events;
    return [...events, ...state, ...this.#queue.end({ status: 'completed' })];
  }

  #compaction(): ResponsesEvent[] {
    const summary = this.#isCompacted ? undefined : this.#summary.text.trim();
    // Before a call stands what the model is going to do.
    if (summary === '' || (summary !== undefined && this.#finish !== 'stop')) throw refuseMissingSummary();
    const seal = (id: string): string | undefined => this.#facts.sealedState(id, summary);
    const item = new CompactionWriter(this.#suffix, this.#nextIndex(), seal);
    return [...this.#queue.add(item), ...this.#queue.end({ status: 'completed' })];
  }

  /** The open message, unless the upstream said that another phase began. */
  #message(part: 'text' | 'refusal'): { item: MessageWriter; events: ResponsesEvent[] } {
    if (this.#part !== part) this.#kept.bytes(partBytes);
    this.#part = part;
    const { last } = this.#queue;
    const phase = this.#phase;
    if (last instanceof MessageWriter && (phase === undefined || phase === last.phase))
      return { item: last, events: [] };
    const state = this.#stateBefore();
    const item = new MessageWriter(this.#suffix, this.#nextIndex(), phase);
    return { item, events: [...state, ...this.#queue.add(item)] };
  }

  /** Opens an item for the state that led to what comes now, unless reasoning is open, which takes it when it closes. */
  #stateBefore(): ResponsesEvent[] {
    const isOpen = this.#queue.last instanceof ReasoningWriter;
    return isOpen || !this.#takesState() ? [] : this.#openReasoning(() => true).events;
  }

  /** `hasState`: whether the item gets the state, asked when it closes. */
  #openReasoning(hasState = () => this.#takesState()): { item: ReasoningWriter; events: ResponsesEvent[] } {
    const seal = (id: string): string | undefined => {
      const sealed = hasState() ? this.#facts.sealedState(id) : undefined;
      this.#sealsLength += sealed?.length ?? 0;
      return sealed;
    };
    const item = new ReasoningWriter(this.#suffix, this.#nextIndex(), seal);
    return { item, events: this.#queue.add(item) };
  }

  /** True if there is state that the client's last encrypted state may lack. One item then gets it. */
  #takesState(): boolean {
    const parts = this.#asked.keepsState ? this.#facts.opaqueParts() : 0;
    const isUnsealed = parts > this.#sealedParts || (parts > 0 && this.#reasonedSince);
    if (!isUnsealed || (!this.#ending && this.#sealsLength >= sealsLengthMax)) return false;
    this.#sealedParts = parts;
    this.#reasonedSince = false;
    return true;
  }

  get #suffix(): string {
    return this.#asked.started.id.replace(/^resp-/, '');
  }

  #nextIndex(): number {
    this.#kept.bytes(itemBytes);
    return this.#queue.nextIndex;
  }
}

const refuseImage = (): InvalidRequest =>
  new InvalidRequest(
    'unsupported_output',
    'model',
    'The model answers with an image, which /v1/responses does not support here. Use /v1/chat/completions.',
  );

/** The log probabilities of a chunk's text in the form of Responses. Entries without a token are left out. */
const toTokenLogprobs = (value: unknown): TokenLogprob[] =>
  recordsIn(asRecord(value)['content']).flatMap((entry) => {
    const [known] = logprobOf(entry);
    return known ? [{ ...known, top_logprobs: recordsIn(entry['top_logprobs']).flatMap(logprobOf) }] : [];
  });

function logprobOf({ token, logprob, bytes }: JsonRecord): TopLogprob[] {
  if (typeof token !== 'string' || typeof logprob !== 'number') return [];
  const numbers = listIn(bytes).filter((byte): byte is number => typeof byte === 'number');
  return [{ token, logprob, bytes: numbers }];
}
