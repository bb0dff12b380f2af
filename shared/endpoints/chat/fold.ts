import {
  isUrlCitation,
  type AssistantMessage,
  type ChatChunk,
  type ChatCompletion,
  type ChatDelta,
  type ChatUsage,
  type FinishReason,
  type ToolCall,
  type ToolCallDelta,
  type UrlCitation,
  deltaText,
  GrowingText,
  type Kept,
} from '../../wire/chat-response.ts';
import { keptForAnswer } from '../endpoint.ts';
import { isRecord, type JsonRecord } from '../../wire/json.ts';

interface CallParts {
  id: string;
  type: 'function' | 'custom';
  name: string;
  text: GrowingText;
  extra: unknown;
}

interface ChoiceParts {
  content: GrowingText;
  reasoning: GrowingText;
  refusal: GrowingText;
  details: ReasoningDetails;
  toolCalls: Map<number, CallParts>;
  annotations: UrlCitation[];
  images: unknown[];
  logprobs: { content: unknown[]; refusal: unknown[] } | null;
  finish: FinishReason;
}

/** Folds the canonical stream into the one object of a non-streaming answer. */
export class ChunksToCompletion {
  readonly #choices = new Map<number, ChoiceParts>();
  readonly #kept: Kept;
  #first: ChatChunk | undefined;
  #usage: ChatUsage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
  #quota: number | undefined;

  constructor(kept = keptForAnswer()) {
    this.#kept = kept;
  }

  push(chunk: ChatChunk): void {
    this.#first ??= chunk;
    if (chunk.usage) this.#usage = chunk.usage;
    if (typeof chunk.quota === 'number') this.#quota = chunk.quota;
    for (const choice of chunk.choices) {
      const parts = this.#parts(choice.index);
      addDelta(parts, choice.delta, this.#kept);
      this.#kept.value(choice.logprobs);
      addLogprobs(parts, choice.logprobs);
      if (choice.finish_reason) parts.finish = choice.finish_reason;
    }
  }

  /** The complete answer. Throws unless a chunk was pushed before. */
  completion(): ChatCompletion {
    const first = this.#first;
    if (!first) throw new Error('a completion needs at least one chunk');
    const choices = [...this.#choices].toSorted(([a], [b]) => a - b);
    return {
      id: first.id,
      object: 'chat.completion',
      created: first.created,
      model: first.model,
      choices: choices.map(([index, parts]) => ({
        index,
        message: messageOf(parts),
        logprobs: parts.logprobs,
        finish_reason: parts.finish,
      })),
      usage: this.#usage,
      ...(this.#quota === undefined ? {} : { quota: this.#quota }),
    };
  }

  #parts(index: number): ChoiceParts {
    const known = this.#choices.get(index);
    if (known) return known;
    const parts: ChoiceParts = {
      content: new GrowingText(),
      reasoning: new GrowingText(),
      refusal: new GrowingText(),
      details: new ReasoningDetails(this.#kept),
      toolCalls: new Map(),
      annotations: [],
      images: [],
      logprobs: null,
      finish: 'stop',
    };
    this.#choices.set(index, parts);
    return parts;
  }
}

function addDelta(parts: ChoiceParts, delta: ChatDelta, kept: Kept): void {
  kept.text(deltaText(delta));
  if (delta.content) parts.content.add(delta.content);
  if (delta.reasoning_content) parts.reasoning.add(delta.reasoning_content);
  if (delta.refusal) parts.refusal.add(delta.refusal);
  parts.details.push(delta.reasoning_details ?? []);
  append(parts.annotations, delta.annotations?.filter(isUrlCitation) ?? [], kept);
  append(parts.images, delta.images ?? [], kept);
  for (const piece of delta.tool_calls ?? []) addPiece(parts.toolCalls, piece, kept);
}

/** What a call takes beside its text. */
const callBytes = 512;

function addPiece(calls: Map<number, CallParts>, piece: ToolCallDelta, kept: Kept): void {
  const text = piece.function?.arguments ?? piece.custom?.input ?? '';
  const known = calls.get(piece.index);
  if (!known) kept.bytes(callBytes);
  if (piece.extra_content !== undefined) kept.value(piece.extra_content);
  known?.text.add(text);
  const call: CallParts = known ?? {
    id: piece.id ?? '',
    type: piece.type ?? 'function',
    name: piece.function?.name ?? piece.custom?.name ?? '',
    text: new GrowingText(),
    extra: undefined,
  };
  if (!known) {
    call.text.add(text);
    calls.set(piece.index, call);
  }
  call.extra = piece.extra_content ?? call.extra;
}

function addLogprobs(parts: ChoiceParts, value: unknown): void {
  if (value === null) return;
  const { content, refusal } = value as { content: unknown; refusal: unknown };
  parts.logprobs ??= { content: [], refusal: [] };
  if (Array.isArray(content)) append(parts.logprobs.content, content);
  if (Array.isArray(refusal)) append(parts.logprobs.refusal, refusal);
}

/** One by one, since a list of an upstream may be longer than a call may have arguments. */
function append<T>(list: T[], more: readonly T[], kept?: Kept): void {
  for (const each of more) {
    kept?.value(each);
    list.push(each);
  }
}

/** As OpenAI does, `content` is null only when the answer consists of tool calls or a refusal. */
function messageOf(parts: ChoiceParts): AssistantMessage {
  const content = parts.content.text;
  const refusal = parts.refusal.text;
  const reasoning = parts.reasoning.text;
  const toolCalls = [...parts.toolCalls].map(([index, call]) => toolCall(index, call));
  const { details, annotations, images } = parts;
  return {
    role: 'assistant',
    content: content === '' && (toolCalls.length > 0 || refusal !== '') ? null : content,
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(details.list.length > 0 && { reasoning_details: details.list }),
    refusal: refusal === '' ? null : refusal,
    tool_calls: toolCalls.length > 0 ? toolCalls : null,
    ...(annotations.length > 0 && { annotations }),
    ...(images.length > 0 && { images }),
  };
}

function toolCall(index: number, { id, type, name, text, extra }: CallParts): ToolCall {
  const whole = text.text;
  const called =
    type === 'custom' ? { custom: { name, input: whole } } : { function: { name, arguments: whole } };
  return { index, id, type, ...called, ...(extra !== undefined && { extra_content: extra }) };
}

/** The fields whose pieces are joined. */
const texts = new Set(['text', 'summary']);

/**
 * OpenRouter's `reasoning_details`, joined from the pieces of a stream as its own answers that do not stream have them:
 * pieces in a row of one type and index are one detail, encrypted ones aside, which come whole. Details go back to the upstream, so nothing of them is lost.
 */
class ReasoningDetails {
  readonly list: unknown[] = [];
  readonly #kept: Kept;

  constructor(kept: Kept) {
    this.#kept = kept;
  }

  push(pieces: readonly unknown[]): void {
    for (const piece of pieces) {
      const last = this.list.at(-1);
      if (isRecord(piece) && isRecord(last) && samePlace(last, piece)) join(last, piece, this.#kept);
      else {
        this.#kept.value(piece);
        this.list.push(isRecord(piece) ? { ...piece } : piece);
      }
    }
  }
}

const samePlace = (a: JsonRecord, b: JsonRecord): boolean =>
  typeof b['index'] === 'number' &&
  a['index'] === b['index'] &&
  a['type'] === b['type'] &&
  b['data'] === undefined;

function join(last: JsonRecord, piece: JsonRecord, kept: Kept): void {
  for (const [field, value] of Object.entries(piece)) {
    const before = last[field];
    const grows = texts.has(field) && typeof before === 'string' && typeof value === 'string';
    if (grows) {
      kept.text(value);
      last[field] = before + value;
    } else if (value !== null && value !== '') {
      if (value !== before) kept.value(value);
      last[field] = value;
    }
  }
}
