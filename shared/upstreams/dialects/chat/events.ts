/** Converts the answers of Chat Completions upstreams, chunks or one whole completion, to canonical chunks. */
import {
  type ChatChunk,
  type ChatDelta,
  type FinishReason,
  deltaText,
  GrowingText,
  ReasoningDetails,
  type UrlCitation,
} from '../../../wire/chat-response.ts';
import { isRecord, type JsonRecord, asRecord, listIn, recordsIn, textIn } from '../../../wire/json.ts';
import type { StatePart } from '../../../wire/turn-state.ts';
import { AnswerWriter, tooLargeFailure, type VendorCounts } from '../../answer-writer.ts';
import { findError } from '../../vendor-errors.ts';
import type { UpstreamEvent } from '../../body-events.ts';
import type { AnswerReader, AnswerReport, ReaderContext } from '../../dialect.ts';
import { ErrorInAnswer, UpstreamFailure, type UpstreamError } from '../../exchange.ts';
import type { Quirks } from '../../quirks.ts';
import type { FinishReading } from '../../vocabulary.ts';
import { ThinkTags, type SplitText } from './think-tags.ts';
import { DeclaredNames, UpstreamToolCalls } from './tool-calls.ts';

/** Compatible servers send anything, so each field is checked. */
type ChatEvent = JsonRecord & Partial<Record<'choices' | 'service_tier' | 'citations', unknown>>;
type ChatChoice = JsonRecord &
  Partial<Record<'index' | 'delta' | 'message' | 'finish_reason' | 'logprobs', unknown>>;

const choicesMax = 128;

/** Passes deltas on at once. Holds the finish reasons until the end, because some upstreams send more after them. */
export class ChatReader implements AnswerReader {
  done = false;
  readonly #context: ReaderContext;
  readonly #writer: AnswerWriter;
  #names: DeclaredNames | undefined;
  readonly #choices = new Map<number, Choice>();
  #isUnderstood = false;
  /** The last event with `citations` of its own, which each event repeats, longer or not. */
  #citingEvent: JsonRecord | undefined;

  constructor(context: ReaderContext) {
    this.#context = context;
    this.#writer = new AnswerWriter(context);
  }

  /** Only the first choice has state: a client continues with it. */
  report(): AnswerReport {
    const first = this.#choices.get(0);
    const { stop: given = [], body } = this.#context.sent;
    const sent = given.filter((each) => [body['stop']].flat().includes(each));
    return {
      ...this.#writer.report(first?.describeTurn() ?? []),
      stopSequence: first?.findStopSequence(given, sent),
    };
  }

  /** Every choice has its finish reason, or `[DONE]` was read. */
  get #isComplete(): boolean {
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
    const error = this.#isComplete ? undefined : findErrorInEvent(value);
    if (error) throw new ErrorInAnswer(error);
    const { service_tier: tier, choices, citations } = value;
    this.#writer.noteUsage(countsOfEvent(value, this.#context.quirks), tier);
    if (Array.isArray(citations) && citations.length > 0) this.#citingEvent = value;
    if (!Array.isArray(choices)) return [];
    this.#isUnderstood = true;
    const chunks = choices.flatMap((source: unknown, position) => {
      if (!isRecord(source)) return [];
      const index = typeof source['index'] === 'number' ? source['index'] : position;
      const said = this.#findChoice(index).push(source);
      return said ? [this.#writer.writeDelta(said.delta, said.logprobs, index)] : [];
    });
    if (event.isWhole) for (const choice of this.#choices.values()) choice.complete();
    return chunks;
  }

  end(): ChatChunk[] {
    if (!this.#isComplete && this.#choices.size > 0) throw new UpstreamFailure('cut');
    if (this.#choices.size === 0)
      throw new UpstreamFailure(this.#isComplete || this.#isUnderstood ? 'empty' : 'junk');
    const choices = [...this.#choices].toSorted(([a], [b]) => a - b);
    return choices.flatMap(([index, choice]) => {
      const { deltas, reason, anyCalls } = choice.end();
      const chunks = [...this.#writeCitations(choice), ...deltas].map((d) =>
        this.#writer.writeDelta(d, null, index),
      );
      return chunks.concat(this.#writer.finish(reason, anyCalls, index));
    });
  }

  /** A complete answer ends normally, however the connection ended. */
  fail(error: unknown): ChatChunk[] {
    if (this.#isComplete) return this.end();
    throw error;
  }

  #findChoice(index: number): Choice {
    const known = this.#choices.get(index);
    if (known) return known;
    if (this.#choices.size >= choicesMax) throw tooLargeFailure();
    const { quirks, sent } = this.#context;
    const newCalls = (): UpstreamToolCalls => {
      this.#names ??= DeclaredNames.readFrom(sent.body);
      return new UpstreamToolCalls(this.#writer, this.#names, sent.wrappedTools);
    };
    const choice = new Choice(this.#writer, { thinkTags: quirks.usesThinkTags, newCalls });
    this.#choices.set(index, choice);
    return choice;
  }

  /** Perplexity and xAI cite beside the choices, others in the message, and some in both. */
  #writeCitations(choice: Choice): ChatDelta[] {
    const annotations = this.#citingEvent && !choice.isAnnotated ? readCitations(this.#citingEvent) : [];
    if (annotations.length === 0) return [];
    this.#writer.memory.value(annotations);
    return [{ annotations }];
  }
}

/** One choice of an answer: its text, its end, and the state that must come back. */
class Choice {
  finish: FinishReason | undefined;
  isAnnotated = false;
  readonly #writer: AnswerWriter;
  readonly #memory: AnswerWriter['memory'];
  /** Called for the first tool call. */
  readonly #createToolCalls: () => UpstreamToolCalls;
  #hasContent = false;
  #hasDelta = false;
  #tools: UpstreamToolCalls | undefined;
  readonly #tags: ThinkTags | undefined;
  /** Reasoning in a field and between tags is the same text twice, so only the source that came first is read. */
  #reasoningSource: 'field' | 'tags' | undefined;
  readonly #details: ReasoningDetails;
  /** Kept under the upstream's own name, because it accepts it back only under that name. */
  #reasoning: { field: DeltaReading['reasoningField']; text: GrowingText } | undefined;
  #extra: JsonRecord | undefined;
  /** The vendor's event that ended the choice. */
  #lastEvent: JsonRecord | undefined;
  #ending: FinishReading | undefined;
  #hasAnswer = false;
  #textLength = 0;

  constructor(
    writer: AnswerWriter,
    { thinkTags, newCalls }: { thinkTags: boolean; newCalls: () => UpstreamToolCalls },
  ) {
    this.#writer = writer;
    this.#memory = writer.memory;
    this.#details = new ReasoningDetails(writer.memory);
    this.#createToolCalls = newCalls;
    if (thinkTags) this.#tags = new ThinkTags();
  }

  push(source: ChatChoice): { delta: ChatDelta; logprobs: unknown } | undefined {
    const { delta: piece, message, finish_reason: reason } = source;
    const ending = this.#writer.readFinish(reason);
    let delta = isRecord(piece) ? this.#read(readDelta(piece)) : {};
    // Perplexity has both: beside a stream's pieces the text so far, and beside a whole answer an empty piece.
    const isWhole = !isRecord(piece) || (!this.#hasDelta && ending !== undefined);
    if (isWhole && isEmpty(delta) && isRecord(message)) delta = this.#read(readDelta(message));
    this.#hasDelta ||= !isEmpty(delta);
    const logprobs = readLogprobs(source.logprobs);
    // A chunk without text may begin an answer, which is held until its first content, so its logprobs count toward the limit.
    // Logprobs beside text are passed on at once, so they don't count.
    if (logprobs !== null && deltaText(delta) === '') this.#memory.value(logprobs);
    this.#end(ending, source);
    return isEmpty(delta) && logprobs === null ? undefined : { delta, logprobs };
  }

  /** A failed choice stays failed, even if another finish reason follows. */
  #end(ending: FinishReading | undefined, source: ChatChoice): void {
    if (ending === undefined || this.#ending === 'failed') return;
    this.#ending = ending;
    this.#lastEvent = source;
    this.finish = ending === 'failed' || ending === 'unknown' ? 'stop' : ending;
  }

  /** Some upstreams leave the finish reason out of a complete JSON answer. */
  complete(): void {
    if (this.#hasContent) this.finish ??= 'stop';
  }

  /** Returns the remaining deltas and the finish reason. A failed choice throws only here: usage may arrive after the reason. */
  end(): { deltas: ChatDelta[]; reason: FinishReason; anyCalls: boolean } {
    if (this.#ending === 'failed') throw new ErrorInAnswer(findError(this.#lastEvent) ?? {});
    if (this.#ending === 'unknown' && !this.#hasAnswer) throw new UpstreamFailure('empty');
    const reason = this.finish ?? 'stop';
    const calls = this.#tools?.end(reason === 'stop' || reason === 'tool_calls') ?? [];
    // An incomplete tag may still be held.
    const texts = this.#tags ? this.#showText(this.#tags.end(), '') : {};
    const deltas = [texts, calls.length > 0 ? { tool_calls: calls } : {}].filter((each) => !isEmpty(each));
    return { deltas, reason, anyCalls: (this.#tools?.shownCalls.length ?? 0) > 0 };
  }

  /**
   * Returns the stop sequence that ended the choice. vLLM and SGLang name it, or say null or a token's number if there
   * was none. If the vendor says nothing, an answer that ended by itself looks the same, so a single sequence is taken
   * as hit.
   */
  findStopSequence(given: readonly string[], sent: readonly string[]): string | undefined {
    const ending = this.#lastEvent;
    if (!ending || sent.length === 0 || this.finish !== 'stop' || this.#tools) return undefined;
    const said = ['stop_reason', 'matched_stop'].filter((name) => name in ending).map((name) => ending[name]);
    const isOnly = given.length === 1 && (said.length === 0 || said.includes('stop_sequence'));
    return given.find((each) => isOnly || said.includes(each));
  }

  /**
   * The layout of the turn: reasoning, text, calls. Reasoning text comes back only with turns that called tools, and
   * is in the details if there are any; signatures and details always come back.
   */
  describeTurn(): StatePart[] {
    const calls = this.#tools?.shownCalls ?? [];
    const turn: StatePart[] = [];
    const details = this.#details.list;
    const reasoning = this.#reasoning;
    if (details.length > 0) turn.push({ opaque: { reasoning_details: details } });
    else if (reasoning && calls.length > 0) turn.push({ opaque: { [reasoning.field]: reasoning.text.text } });
    if (this.#textLength > 0) turn.push({ text: this.#textLength });
    for (const [call, { extra }] of calls.entries()) {
      turn.push({ call });
      if (extra) turn.push({ opaque: { call, extra_content: extra } });
    }
    const loose = this.#tools?.looseExtra;
    if (loose || this.#extra) turn.push({ opaque: { extra_content: { ...loose, ...this.#extra } } });
    return turn;
  }

  #read(read: DeltaReading): ChatDelta {
    const { content, refusal, details, annotations, images } = read;
    this.#keep(read);
    this.isAnnotated ||= annotations.length > 0;
    const calls = read.calls.length > 0 ? (this.#tools ??= this.#createToolCalls()).push(read.calls) : [];
    // Reasoning in its own field comes before what stands between tags.
    const inField = this.#chooseReasoning('field', read.reasoning);
    return {
      ...this.#showText(this.#tags?.push(content) ?? { content, reasoning: '' }, inField),
      ...(refusal !== '' && { refusal }),
      ...(details.length > 0 && { reasoning_details: details }),
      ...(calls.length > 0 && { tool_calls: calls }),
      ...(annotations.length > 0 && { annotations }),
      ...(images.length > 0 && { images }),
    };
  }

  /** Text between and behind tags, after reasoning in a field of its own. */
  #showText({ content, reasoning: between }: SplitText, inField: string): ChatDelta {
    this.#textLength += content.length;
    const reasoning = inField + this.#chooseReasoning('tags', between);
    return { ...(content !== '' && { content }), ...(reasoning !== '' && { reasoning_content: reasoning }) };
  }

  #chooseReasoning(place: 'field' | 'tags', text: string): string {
    if (text !== '') this.#reasoningSource ??= place;
    return this.#reasoningSource === place ? text : '';
  }

  #keep({ content, reasoning, reasoningField, refusal, details, extra, calls, images }: DeltaReading): void {
    const text = content + reasoning + refusal;
    this.#memory.text(text);
    this.#hasAnswer ||= content !== '' || refusal !== '' || calls.length > 0 || images.length > 0;
    this.#hasContent ||= this.#hasAnswer || text !== '';
    this.#details.push(details);
    if (extra) {
      this.#memory.value(extra);
      this.#extra = { ...this.#extra, ...extra };
    }
    if (reasoning === '') return;
    this.#reasoning ??= { field: reasoningField, text: new GrowingText() };
    this.#reasoning.text.add(reasoning);
  }
}

const isEmpty = (delta: ChatDelta): boolean => Object.keys(delta).length === 0;

function readLogprobs(value: unknown): unknown {
  if (!isRecord(value)) return null;
  return { content: value['content'] ?? null, refusal: value['refusal'] ?? null };
}

// Reads one delta, or a whole message, field by field.

/** The content of one delta. */
interface DeltaReading {
  content: string;
  reasoning: string;
  reasoningField: 'reasoning_content' | 'reasoning';
  refusal: string;
  details: JsonRecord[];
  annotations: UrlCitation[];
  images: JsonRecord[];
  calls: unknown[];
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
    annotations: listIn(source['annotations']).flatMap(readCitation),
    images: listIn(source['images']).flatMap(readImage),
    calls: pieces.length > 0 ? pieces : legacy,
    extra: isRecord(source['extra_content']) ? source['extra_content'] : undefined,
  };
}

/** Mistral sends a list of typed content parts instead of a string. */
function textOf(value: unknown, kind: 'text' | 'thinking'): string {
  if (typeof value === 'string') return kind === 'text' ? value : '';
  return recordsIn(value)
    .filter((part) => part['type'] === kind)
    .map((part) => textOf(part[kind], 'text'))
    .join('');
}

/** Addresses in the order of their numbers in the text, with the titles of the search results. */
function readCitations({ citations, search_results: results }: JsonRecord): UrlCitation[] {
  const titles = new Map(listIn(results).map((each) => [asRecord(each)['url'], asRecord(each)['title']]));
  return listIn(citations).flatMap((each) => {
    const cited = typeof each === 'string' ? { url: each, title: titles.get(each) } : each;
    return readCitation({ url_citation: cited });
  });
}

function readCitation(value: unknown): UrlCitation[] {
  const { url, title, start_index: start, end_index: end } = asRecord(asRecord(value)['url_citation']);
  if (typeof url !== 'string' || url === '') return [];
  const range = { start_index: readNumber(start), end_index: readNumber(end) };
  return [{ type: 'url_citation', url_citation: { url, title: textIn(title), ...range } }];
}

const readNumber = (value: unknown): number => (typeof value === 'number' ? value : 0);

function readImage(value: unknown): JsonRecord[] {
  const { url } = asRecord(asRecord(value)['image_url']);
  return typeof url === 'string' && url !== '' ? [{ type: 'image_url', image_url: { url } }] : [];
}

/**
 * Reads the counts beside the choices, in the first choice (Moonshot) or under `x_groq`. A compatible server may use
 * any vendor's names, so they are read by name and not by vendor.
 */
export function countsOfEvent(event: JsonRecord, quirks: Partial<Quirks> = {}): VendorCounts | undefined {
  const { totalHidesThinking } = quirks;
  const [choice] = listIn(event['choices']);
  const places = [event['usage'], asRecord(choice)['usage'], asRecord(event['x_groq'])['usage']];
  const usage = places.find(isRecord);
  return usage && { ...countsOf(usage), totalHidesThinking };
}

function countsOf(usage: JsonRecord): VendorCounts {
  const inputDetails = asRecord(usage['prompt_tokens_details'] ?? usage['input_tokens_details']);
  const outputDetails = asRecord(usage['completion_tokens_details'] ?? usage['output_tokens_details']);
  const lifetimes = asRecord(usage['cache_creation'] ?? inputDetails['cache_creation_token_details']);
  // Anthropic's names. Its own input count excludes both; gateways that include them keep the names.
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
    ...(isNamedSo && { cacheIsApart: usage['prompt_tokens'] === undefined || 'unsure' }),
  };
}

/** Some servers send no `error` field, but an event without choices, marked by its type, `success` or `base_resp`. */
function findErrorInEvent(event: JsonRecord): UpstreamError | undefined {
  const hasChoices = Array.isArray(event['choices']);
  const marked = event['object'] === 'error' || event['type'] === 'error' || event['success'] === false;
  const coded = isRecord(event['base_resp']) && Boolean(event['base_resp']['status_code']);
  if (!event['error'] && !((marked || coded) && !hasChoices)) return undefined;
  return findError(event) ?? {};
}
