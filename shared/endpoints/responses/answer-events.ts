import type { Machine } from '../../stream/machine.ts';
import {
  type ChatChunk,
  type ChatDelta,
  type ChatUsage,
  type ChunkChoice,
  deltaText,
  type Kept,
} from '../../wire/chat-response.ts';
import { InvalidRequest, type ErrorObject } from '../../wire/invalid-request.ts';
import { asRecord, recordsIn, type JsonRecord } from '../../wire/json.ts';
import { type AnswerFacts, type SentFacts, keptForAnswer } from '../endpoint.ts';
import {
  type ResponseObject,
  type ResponsesEvent,
  type TokenLogprob,
  finishedResponse,
  responseError,
  type TopLogprob,
} from './response-object.ts';
import { AnswerItems } from './answer-items.ts';
import type { DeclaredTool } from './item-writers.ts';

/** What a piece takes beside its text, until the item is done. */
const pieceBytes = 16;

const noUsage: ChatUsage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };

/** What the request says about its answer. */
interface AskedAnswer {
  /** The response object at the start, without the fields that `echo` gives. */
  started: ResponseObject;
  /** The fields of the request that are repeated in the answer, as they are in force. */
  echo: (sent: SentFacts) => JsonRecord;
  declared: ReadonlyMap<string, DeclaredTool>;
  /** The text of the reasoning is shown as a summary. */
  summary: boolean;
  /** The client keeps the state of the turn. */
  keepsState: boolean;
  logprobs: boolean;
}

/**
 * Converts the canonical stream of one choice to the events of a Responses stream: created in_progress (item
 * event | in_progress)* (completed | failed). Throws an InvalidRequest for an image, which no item can hold.
 */
export class ChatToResponses implements Machine<ChatChunk, ResponsesEvent> {
  readonly #asked: AskedAnswer;
  readonly #facts: AnswerFacts;
  readonly #items: AnswerItems;
  readonly #kept: Kept = keptForAnswer();
  /** The response object of the opening events; undefined before them. */
  #opened: ResponseObject | undefined;
  /** The index of the first choice, which alone is shown. Some upstreams count their choices from 1. */
  #choice: number | undefined;
  #finish = 'stop';
  #usage = noUsage;
  #quota: number | undefined;
  /** Unix seconds; undefined: the items are not closed yet. */
  #endedAt: number | undefined;

  constructor(asked: AskedAnswer, facts: AnswerFacts) {
    this.#asked = asked;
    this.#facts = facts;
    this.#items = new AnswerItems({
      suffix: asked.started.id.replace(/^resp-/, ''),
      declared: asked.declared,
      kept: this.#kept,
      state: asked.keepsState ? facts : undefined,
    });
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
    if (shown.some(({ delta }) => (delta.images?.length ?? 0) > 0)) throw imageRefused();
    return [...this.start(), ...shown.flatMap((choice) => this.#pushChoice(choice))];
  }

  /** Closes the items: what comes before the last event. */
  close(): ResponsesEvent[] {
    const events = [...this.start(), ...this.#items.end(this.#finish)];
    this.#endedAt ??= this.#facts.now();
    return events;
  }

  /** The response as the last event has it: valid from `close` on, or at any time with the error that it fails with. */
  whole(error?: ErrorObject): ResponseObject {
    if (error) {
      const { output } = this.#items;
      return { ...this.#response(), status: 'failed', output, error: responseError(error) };
    }
    return finishedResponse(this.#response(), {
      output: this.#items.output,
      usage: this.#usage,
      finish: this.#finish,
      quota: this.#quota,
      endedAt: this.#endedAt ?? this.#facts.now(),
    });
  }

  /** The response of a call that is answered later. */
  queued(): ResponseObject {
    return { ...this.#response(), status: 'queued' };
  }

  end(): ResponsesEvent[] {
    const events = this.#endedAt === undefined ? this.close() : [];
    return [...events, { type: 'response.completed', response: this.whole() }];
  }

  /** Does not close open items: a client would run an incomplete call that is marked as done. */
  failed(error: ErrorObject): ResponsesEvent[] {
    const response = this.whole(error);
    return [...this.start(), { type: 'response.failed', response, error: response.error }];
  }

  #response(): ResponseObject {
    const { started, echo } = this.#asked;
    const model = this.#facts.model?.() ?? started.model;
    return { ...started, model, ...echo(this.#facts.sent()), store: this.#facts.stored?.() ?? false };
  }

  #pushChoice({ delta, logprobs, finish_reason: finish }: ChunkChoice): ResponsesEvent[] {
    if (finish) this.#finish = finish;
    const shown = this.#asked.logprobs && logprobs !== null ? tokenLogprobs(logprobs) : [];
    return this.#pushDelta(delta, shown);
  }

  #pushDelta(delta: ChatDelta, logprobs: TokenLogprob[]): ResponsesEvent[] {
    const items = this.#items;
    this.#kept.bytes(pieceBytes);
    this.#kept.text(deltaText(delta));
    for (const each of [logprobs, delta.annotations]) if (each && each.length > 0) this.#kept.value(each);
    if (delta.phase !== undefined) items.phase(delta.phase);
    const events: ResponsesEvent[] = [];
    if (delta.reasoning_content || delta.reasoning_details) items.reasoned();
    if (delta.reasoning_content && this.#asked.summary)
      events.push(...items.reasoning(delta.reasoning_content));
    if (delta.content) events.push(...items.text(delta.content, logprobs));
    if (delta.refusal) events.push(...items.refusal(delta.refusal));
    for (const annotation of delta.annotations ?? []) events.push(...items.annotation(annotation));
    for (const piece of delta.tool_calls ?? []) events.push(...items.call(piece));
    return events;
  }
}

const imageRefused = (): InvalidRequest =>
  new InvalidRequest(
    'unsupported_output',
    'model',
    'The model answers with an image, which an answer on /v1/responses cannot hold here. Ask on /v1/chat/completions.',
  );

/** The log probabilities of a chunk's text in the form of Responses. Entries without a token are left out. */
function tokenLogprobs(value: unknown): TokenLogprob[] {
  const { content } = asRecord(value);
  return recordsIn(content).flatMap((entry) => {
    const known = logprobOf(entry);
    return known ? [{ ...known, top_logprobs: recordsIn(entry['top_logprobs']).flatMap(topOf) }] : [];
  });
}

const topOf = (entry: JsonRecord): TopLogprob[] => {
  const known = logprobOf(entry);
  return known ? [known] : [];
};

function logprobOf({ token, logprob, bytes }: JsonRecord): TopLogprob | undefined {
  if (typeof token !== 'string' || typeof logprob !== 'number') return undefined;
  const numbers = Array.isArray(bytes)
    ? bytes.filter((byte): byte is number => typeof byte === 'number')
    : [];
  return { token, logprob, bytes: numbers };
}
