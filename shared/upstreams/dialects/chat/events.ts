/**
 * Converts the answers of Chat Completions upstreams, chunks or one whole completion, to canonical chunks.
 */
import {
  type ChatChunk,
  type ChatDelta,
  type FinishReason,
  type ReportedUsage,
  deltaText,
  GrowingText,
  type UrlCitation,
} from '../../../wire/chat-response.ts';
import { isRecord, type JsonRecord, asRecord, listIn, recordsIn, textIn } from '../../../wire/json.ts';
import type { StatePart } from '../../../wire/turn-state.ts';
import {
  AnswerWriter,
  tooLarge,
  serviceTierOf,
  UsageCounts,
  type VendorCounts,
} from '../../answer-writer.ts';
import type { UpstreamEvent } from '../../body-events.ts';
import type { AnswerReader, ReaderContext } from '../../dialect.ts';
import { ErrorInAnswer, UpstreamFailure, type UpstreamError } from '../../exchange.ts';
import { DetailBlocks, statePartsOf } from './state.ts';
import { MirroredReasoning, ThinkTags, type SplitText } from './think-tags.ts';
import { DeclaredNames, UpstreamToolCalls } from './tool-calls.ts';

/** The fields that are read, of a chunk and of a whole completion. Compatible servers send anything, so each is checked. */
type ChatEvent = JsonRecord & Partial<Record<'choices' | 'service_tier' | 'citations', unknown>>;
type ChatChoice = Partial<Record<'index' | 'delta' | 'message' | 'finish_reason' | 'logprobs', unknown>>;

const choicesMax = 128;

/**
 * Deltas are passed on at once; the first of each choice gets the role. At the end comes a finish chunk for
 * each choice. Finish reasons are held until then, because some upstreams send more after them.
 */
export class ChatReader implements AnswerReader {
  done = false;
  serviceTier: string | undefined;
  readonly #context: ReaderContext;
  readonly #writer: AnswerWriter;
  #names: DeclaredNames | undefined;
  readonly #choices = new Map<number, Choice>();
  readonly #usage = new UsageCounts();
  #understood = false;
  /** The last event with `citations` of its own, which each event repeats, longer or not. */
  #cited: JsonRecord | undefined;

  constructor(context: ReaderContext) {
    this.#context = context;
    this.#writer = new AnswerWriter(context);
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
    if (!isRecord(event.value)) return [];
    const value: ChatEvent = event.value;
    const error = this.#whole ? undefined : errorOfEvent(value);
    if (error) throw new ErrorInAnswer(error);
    this.#usage.push(countsOfEvent(value));
    const { service_tier: tier, choices, citations } = value;
    this.serviceTier = serviceTierOf(tier) ?? this.serviceTier;
    if (Array.isArray(citations) && citations.length > 0) this.#cited = value;
    if (!Array.isArray(choices)) return [];
    this.#understood = true;
    const chunks = choices.flatMap((source: unknown, position) => {
      if (!isRecord(source)) return [];
      const index = typeof source['index'] === 'number' ? source['index'] : position;
      const said = this.#choice(index).push(source);
      return said ? [this.#writer.delta(said.delta, said.logprobs, index)] : [];
    });
    if (event.isWhole) for (const choice of this.#choices.values()) choice.complete();
    return chunks;
  }

  end(): ChatChunk[] {
    if (!this.#whole && this.#choices.size > 0) throw new UpstreamFailure('cut');
    if (this.#choices.size === 0)
      throw new UpstreamFailure(this.#whole || this.#understood ? 'empty' : 'junk');
    const choices = [...this.#choices].toSorted(([a], [b]) => a - b);
    return choices.flatMap(([index, choice]) => {
      const { deltas, reason, anyCalls } = choice.end();
      const chunks = [...this.#citations(choice), ...deltas].map((d) => this.#writer.delta(d, null, index));
      return chunks.concat(this.#writer.finish(reason, anyCalls, index));
    });
  }

  /** A complete answer ends normally, however the connection ended. */
  fail(error: unknown): ChatChunk[] {
    if (this.#whole) return this.end();
    throw error;
  }

  #choice(index: number): Choice {
    const known = this.#choices.get(index);
    if (known) return known;
    if (this.#choices.size >= choicesMax) throw tooLarge();
    const { quirks, sent } = this.#context;
    const newCalls = (): UpstreamToolCalls => {
      this.#names ??= DeclaredNames.of(sent.body);
      return new UpstreamToolCalls(this.#writer, this.#names, sent.wrapped);
    };
    const choice = new Choice(this.#writer, { isFirst: index === 0, thinkTags: quirks.thinkTags, newCalls });
    this.#choices.set(index, choice);
    return choice;
  }

  /** Perplexity and xAI cite beside the choices, which are answers to one question; others in the message, and some in both. */
  #citations(choice: Choice): ChatDelta[] {
    const annotations = this.#cited && !choice.annotated ? citationsOfEvent(this.#cited) : [];
    if (annotations.length === 0) return [];
    this.#writer.kept.value(annotations);
    return [{ annotations }];
  }
}

interface ChoiceReading {
  /** State is kept of the first choice: it is the one that a client continues with. */
  isFirst: boolean;
  thinkTags: boolean;
  /** Is asked at the first call. */
  newCalls: () => UpstreamToolCalls;
}

/** One choice of an answer: what it said, whether it is finished, and what of it has to come back. */
class Choice {
  finish: FinishReason | undefined;
  /** It has annotations of its own. */
  annotated = false;
  readonly #kept: AnswerWriter['kept'];
  readonly #reading: ChoiceReading;
  #hasContent = false;
  #hasSaid = false;
  #tools: UpstreamToolCalls | undefined;
  readonly #tags: { split: ThinkTags; mirrored: MirroredReasoning } | undefined;
  #details: DetailBlocks | undefined;
  #reasoning: { field: DeltaReading['reasoningField']; text: GrowingText } | undefined;
  #extra: JsonRecord | undefined;
  #textLength = 0;

  constructor({ kept }: AnswerWriter, reading: ChoiceReading) {
    this.#kept = kept;
    this.#reading = reading;
    if (reading.thinkTags) this.#tags = { split: new ThinkTags(), mirrored: new MirroredReasoning() };
  }

  /** Returns nothing for a choice without content. */
  push(source: ChatChoice): { delta: ChatDelta; logprobs: unknown } | undefined {
    const { delta: piece, message, finish_reason: reason } = source;
    if (reason === 'error') throw new ErrorInAnswer(chatError(source) ?? {});
    let delta = isRecord(piece) ? this.#read(readDelta(piece)) : {};
    // Perplexity has both: beside a stream's pieces the text so far, and beside a whole answer an empty piece.
    const isWhole = !isRecord(piece) || (!this.#hasSaid && finishReason(reason) !== undefined);
    if (isWhole && isEmpty(delta) && isRecord(message)) delta = this.#read(readDelta(message));
    this.#hasSaid ||= !isEmpty(delta);
    const logprobs = readLogprobs(source.logprobs);
    // A chunk without text may be the beginning of an answer, which is held until its first content.
    // What is only passed on is not counted, but for text, of which no model writes so much.
    if (logprobs !== null && deltaText(delta) === '') this.#kept.value(logprobs);
    this.finish = finishReason(reason) ?? this.finish;
    return isEmpty(delta) && logprobs === null ? undefined : { delta, logprobs };
  }

  /** The whole answer was read: some upstreams leave the reason out of a JSON answer, which is no less complete. */
  complete(): void {
    if (this.#hasContent) this.finish ??= 'stop';
  }

  /** What is still to say when the answer ends, and why it ended. */
  end(): { deltas: ChatDelta[]; reason: FinishReason; anyCalls: boolean } {
    const reason = this.finish ?? 'stop';
    const calls = this.#tools?.end(reason === 'stop' || reason === 'tool_calls') ?? [];
    // A tag may still be held that only began.
    const texts = this.#tags ? this.#shown(this.#tags.split.end(), '') : {};
    const deltas = [texts, calls.length > 0 ? { tool_calls: calls } : {}].filter((each) => !isEmpty(each));
    return { deltas, reason, anyCalls: (this.#tools?.shown ?? 0) > 0 };
  }

  get state(): readonly StatePart[] | undefined {
    const loose = this.#tools?.looseExtra;
    return statePartsOf({
      reasoning: this.#reasoning && { ...this.#reasoning, text: this.#reasoning.text.text },
      details: this.#details?.blocks ?? [],
      extra: loose || this.#extra ? { ...loose, ...this.#extra } : undefined,
      callExtras: this.#tools?.extras ?? new Map<number, JsonRecord>(),
      textLength: this.#textLength,
      calls: this.#tools?.shown ?? 0,
    });
  }

  #read(read: DeltaReading): ChatDelta {
    const { content, reasoning, refusal, details, annotations, images } = read;
    this.#keep(read);
    this.annotated ||= annotations.length > 0;
    const calls = read.calls.length > 0 ? (this.#tools ??= this.#reading.newCalls()).push(read.calls) : [];
    // Reasoning in its own field comes before what stands between tags.
    const inField = this.#tags ? this.#tags.mirrored.push('field', reasoning) : reasoning;
    const split = this.#tags ? this.#tags.split.push(content) : { content, reasoning: '' };
    return {
      ...this.#shown(split, inField),
      ...(refusal !== '' && { refusal }),
      ...(details.length > 0 && { reasoning_details: details }),
      ...(calls.length > 0 && { tool_calls: calls }),
      ...(annotations.length > 0 && { annotations }),
      ...(images.length > 0 && { images }),
    };
  }

  /** Text as it was split, behind reasoning in a field of its own. */
  #shown({ content, reasoning: between }: SplitText, inField: string): ChatDelta {
    this.#textLength += content.length;
    const reasoning = inField + (this.#tags?.mirrored.push('tags', between) ?? between);
    return { ...(content !== '' && { content }), ...(reasoning !== '' && { reasoning_content: reasoning }) };
  }

  #keep({ content, reasoning, reasoningField, refusal, details, extra, calls, images }: DeltaReading): void {
    const text = content + reasoning + refusal;
    this.#kept.text(text);
    this.#hasContent ||= text !== '' || calls.length > 0 || images.length > 0;
    if (!this.#reading.isFirst) return;
    if (details.length > 0) {
      this.#details ??= new DetailBlocks(this.#kept);
      this.#details.push(details);
    }
    if (extra) {
      this.#kept.value(extra);
      this.#extra = { ...this.#extra, ...extra };
    }
    if (reasoning === '') return;
    this.#reasoning ??= { field: reasoningField, text: new GrowingText() };
    this.#reasoning.text.add(reasoning);
  }
}

const isEmpty = (delta: ChatDelta): boolean => Object.keys(delta).length === 0;

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

function readLogprobs(value: unknown): unknown {
  if (!isRecord(value)) return null;
  return { content: value['content'] ?? null, refusal: value['refusal'] ?? null };
}

// Reads one delta, or a whole message, field by field.

/** What a delta says. Empty texts and lists: nothing. */
interface DeltaReading {
  content: string;
  /** Reasoning in a field of its own, and the name of that field. */
  reasoning: string;
  reasoningField: 'reasoning_content' | 'reasoning';
  refusal: string;
  details: JsonRecord[];
  annotations: UrlCitation[];
  images: JsonRecord[];
  /** Pieces of calls. */
  calls: unknown[];
  /** The vendor's state of the turn. */
  extra: JsonRecord | undefined;
}

function readDelta(source: JsonRecord): DeltaReading {
  const named = textOf(source['reasoning_content'], 'text');
  const other = textOf(source['reasoning'], 'text');
  const pieces = listIn(source['tool_calls']);
  const legacy = isRecord(source['function_call']) ? [{ index: 0, function: source['function_call'] }] : [];
  return {
    content: textOf(source['content'], 'text'),
    reasoning: named || other || textOf(source['content'], 'thinking'),
    reasoningField: named === '' && other !== '' ? 'reasoning' : 'reasoning_content',
    refusal: textOf(source['refusal'], 'text'),
    details: recordsIn(source['reasoning_details']),
    annotations: listIn(source['annotations']).flatMap(citation),
    images: listIn(source['images']).flatMap(image),
    calls: pieces.length > 0 ? pieces : legacy,
    extra: isRecord(source['extra_content']) ? source['extra_content'] : undefined,
  };
}

/** Text of a string or, as Mistral sends it, of a list of typed parts. */
function textOf(value: unknown, kind: 'text' | 'thinking'): string {
  if (typeof value === 'string') return kind === 'text' ? value : '';
  return recordsIn(value)
    .filter((part) => part['type'] === kind)
    .map((part) => textOf(part[kind], 'text'))
    .join('');
}

/** Addresses in the order in which the text names them by number, with the titles of the search results that say them. */
function citationsOfEvent({ citations, search_results: results }: JsonRecord): UrlCitation[] {
  const titles = new Map(listIn(results).map((each) => [asRecord(each)['url'], asRecord(each)['title']]));
  return listIn(citations).flatMap((each) => {
    const cited = typeof each === 'string' ? { url: each, title: titles.get(each) } : each;
    return citation({ url_citation: cited });
  });
}

function citation(value: unknown): UrlCitation[] {
  const { url, title, start_index: start, end_index: end } = asRecord(asRecord(value)['url_citation']);
  if (typeof url !== 'string' || url === '') return [];
  const range = { start_index: numberIn(start), end_index: numberIn(end) };
  return [{ type: 'url_citation', url_citation: { url, title: textIn(title), ...range } }];
}

const numberIn = (value: unknown): number => (typeof value === 'number' ? value : 0);

function image(value: unknown): JsonRecord[] {
  const { url } = asRecord(asRecord(value)['image_url']);
  return typeof url === 'string' && url !== '' ? [{ type: 'image_url', image_url: { url } }] : [];
}

/**
 * The counts in an event: beside the choices, in the first choice (Moonshot) or under `x_groq`. A compatible server may
 * use any vendor's names, so they are read by name and not by vendor.
 */
export function countsOfEvent(event: JsonRecord): VendorCounts | undefined {
  const [choice] = listIn(event['choices']);
  const places = [event['usage'], asRecord(choice)['usage'], asRecord(event['x_groq'])['usage']];
  const usage = places.find(isRecord);
  return usage && countsOf(usage);
}

function countsOf(usage: JsonRecord): VendorCounts {
  const inputDetails = asRecord(usage['prompt_tokens_details'] ?? usage['input_tokens_details']);
  const outputDetails = asRecord(usage['completion_tokens_details'] ?? usage['output_tokens_details']);
  const lifetimes = asRecord(usage['cache_creation'] ?? inputDetails['cache_creation_token_details']);
  // Anthropic's names. Its own count of input leaves both out; gateways that add them keep the names.
  const { cache_read_input_tokens: read, cache_creation_input_tokens: written } = usage;
  const isNamedSo = typeof (read ?? written) === 'number';
  return {
    input: usage['prompt_tokens'] ?? usage['input_tokens'],
    output: usage['completion_tokens'] ?? usage['output_tokens'],
    total: usage['total_tokens'],
    reasoning: outputDetails['reasoning_tokens'] ?? usage['reasoning_tokens'],
    cached:
      inputDetails['cached_tokens'] ?? usage['prompt_cache_hit_tokens'] ?? usage['cached_tokens'] ?? read,
    written:
      inputDetails['cache_write_tokens'] ??
      inputDetails['cache_creation_tokens'] ??
      usage['cache_write_tokens'] ??
      written,
    writtenForMinutes: lifetimes['ephemeral_5m_input_tokens'],
    writtenForHour: lifetimes['ephemeral_1h_input_tokens'],
    cacheIsApart: isNamedSo && (usage['prompt_tokens'] === undefined || 'unsure'),
  };
}

const reasonsMax = 8;
const reasonPattern = /^[A-Za-z0-9_.-]{1,100}$/;

/** OpenAI's error object, or one of the shapes that servers behind compatible upstreams use. */
export function chatError(body: unknown): UpstreamError | undefined {
  // Some upstreams wrap the error in a list.
  const whole = asRecord(firstOf(body));
  const { message, detail } = whole;
  const error = firstOf(whole['error']);
  if (isRecord(error)) return readError(error);
  if (typeof error === 'string') return readError({ ...whole, message: error });
  if (typeof message === 'string') return readError(whole);
  if (typeof detail === 'string') return { message: detail };
  return detailError(detail) ?? detailError(asRecord(message)['detail']);
}

/** The first of the faults that validating servers list, each with the path of its field in `loc`. */
function detailError(detail: unknown): UpstreamError | undefined {
  if (!Array.isArray(detail)) return undefined;
  const { msg, loc } = asRecord(detail[0]);
  const path = Array.isArray(loc) ? loc.filter((step) => step !== 'body').join('.') : undefined;
  return { message: msg, ...(path && { param: path }) };
}

/**
 * The error in an event of an answer with status 200. Some servers send the error itself,
 * marked by its type.
 */
function errorOfEvent(event: JsonRecord): UpstreamError | undefined {
  const marked = event['object'] === 'error' || event['type'] === 'error';
  if (!event['error'] && !(marked && !Array.isArray(event['choices']))) return undefined;
  return chatError(event) ?? {};
}

/** Codes stay numbers where they are: Google's and others' repeat the status there and say the rest in `status`. */
function readError(error: JsonRecord): UpstreamError {
  const { message, type, status, code, param, details } = error;
  const found = listIn(details).map((detail) => textIn(asRecord(detail)['reason']));
  const reasons = found.filter((reason) => reasonPattern.test(reason)).slice(0, reasonsMax);
  return {
    message,
    type: type ?? (typeof status === 'string' ? status : undefined),
    code,
    param,
    ...(reasons.length > 0 && { reasons }),
  };
}

const firstOf = (value: unknown): unknown => (Array.isArray(value) ? value[0] : value);
