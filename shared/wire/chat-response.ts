/**
 * Types of the answers of POST /v1/chat/completions. There are no schemas here, because the relay never
 * parses its own output; `test/support/wire-schemas.ts` holds the schemas that tests use. Source: the relay's
 * client contract, "Chat response" and "Chat stream chunk", and OpenAI's required fields.
 */

import type { JsonRecord } from './json.ts';

/** Token counts. The totals include cached, cache-written and reasoning tokens. */
export interface ChatUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details?: PromptTokensDetails;
  completion_tokens_details?: { reasoning_tokens: number };
}

/**
 * The tokens of one answer as its upstream counted them, in one meaning for all vendors: `input` includes what was read
 * from the cache and written to it, `output` includes reasoning, `written` includes `writtenForHour`. Absent: unknown.
 * The numbers are as they were reported, also impossible ones: what is charged is decided later.
 */
export type ReportedUsage = Partial<
  Record<'input' | 'output' | 'reasoning' | ReportedPart, number | undefined>
> & {
  /** The vendor's own counts beside those of its runs, whose sum the others are. */
  topLevel?: ReportedUsage | undefined;
};

/** The parts of the prompt that were counted apart. Absent: none, and for clients: of an upstream that never counts it. */
export type PromptTokensDetails = { cached_tokens: number } & Partial<Record<PartCount, number>>;

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter';

/** A complete tool call in a message. Exactly one of `function` and `custom` is set, as `type` says. */
export interface ToolCall {
  index: number;
  id: string;
  type: 'function' | 'custom';
  function?: { name: string; arguments: string };
  custom?: { name: string; input: string };
  /** State of the upstream for clients that send it back, such as Gemini's thought signature. */
  extra_content?: unknown;
}

/**
 * A piece of a tool call. The first piece of an index carries id, type and name. A piece of a custom call has
 * `custom`, any other piece of text `function`.
 */
export interface ToolCallDelta {
  index: number;
  id?: string;
  type?: 'function' | 'custom';
  function?: { name?: string; arguments?: string };
  custom?: { name?: string; input?: string };
  extra_content?: unknown;
}

export interface UrlCitation {
  type: 'url_citation';
  url_citation: { url: string; title: string; start_index: number; end_index: number };
}

/** A file that a tool of the upstream read or made, in the form of Responses: Chat Completions has none, so chat clients get none. */
export type FileAnnotation =
  | { type: 'file_citation'; file_id: string; filename: string; index: number }
  | { type: 'file_path'; file_id: string; index: number }
  | {
      type: 'container_file_citation';
      container_id: string;
      file_id: string;
      filename: string;
      start_index: number;
      end_index: number;
    };

export type Annotation = UrlCitation | FileAnnotation;

export const isUrlCitation = (annotation: Annotation): annotation is UrlCitation =>
  annotation.type === 'url_citation';

export interface ChatDelta {
  role?: 'assistant';
  content?: string | null;
  /** Reasoning that the upstream shows: its text or a summary of it. */
  reasoning_content?: string;
  /** OpenRouter's form of reasoning with its state, for clients that send it back. */
  reasoning_details?: unknown[];
  refusal?: string;
  tool_calls?: ToolCallDelta[];
  annotations?: Annotation[];
  images?: unknown[];
  /** `commentary` or `final_answer`: what the text that follows is, for upstreams that say so. */
  phase?: string;
}

export interface ChunkChoice {
  index: number;
  delta: ChatDelta;
  logprobs: unknown;
  finish_reason: FinishReason | null;
}

/**
 * One chunk of a streamed answer. It is also the canonical form of every answer inside the relay, streamed or
 * not. In canonical form a finish chunk has an empty delta, and usage comes last, from the meter, in a separate chunk
 * with empty `choices`. The renderer decides how usage and `quota` are sent to the client.
 */
export interface ChatChunk {
  id: string;
  object: 'chat.completion.chunk';
  created: number;
  model: string;
  choices: ChunkChoice[];
  usage: ChatUsage | null;
  /** Official mode only: what the call would have cost, in yuan. Null on chunks before the end. */
  quota?: number | null;
  /** The upstream's own event, for a client that speaks its form: all that `choices` has of it, and more. */
  native?: NativeEvent | undefined;
  /** The vectors, one for each input, in their order. */
  vectors?: readonly Float32Array[] | undefined;
}

/** `isContent`: a client sees something of it. */
export interface NativeEvent {
  readonly event: JsonRecord;
  readonly isContent: boolean;
}

export interface AssistantMessage {
  role: 'assistant';
  content: string | null;
  reasoning_content?: string;
  reasoning_details?: unknown[];
  refusal: string | null;
  tool_calls: ToolCall[] | null;
  annotations?: UrlCitation[];
  images?: unknown[];
}

export interface ChatCompletion {
  id: string;
  object: 'chat.completion';
  created: number;
  model: string;
  choices: { index: number; message: AssistantMessage; logprobs: unknown; finish_reason: FinishReason }[];
  usage: ChatUsage;
  /** Official mode only: what the call would have cost, in yuan. */
  quota?: number;
}

/** The fields that all chunks of one answer share. `model` is the public base name, not the upstream's. */
export interface AnswerIdentity {
  /** The request id. The id of each chunk is `chatcmpl-` followed by it. */
  requestId: string;
  /** Unix seconds. */
  created: number;
  model: string;
}

/** True if a chunk has content that a client sees. The first such chunk opens the answer. */
export const hasContent = (chunk: ChatChunk): boolean =>
  chunk.native?.isContent === true ||
  chunk.vectors !== undefined ||
  chunk.choices.some(
    ({ delta }) =>
      deltaText(delta) !== '' || (delta.tool_calls?.length ?? 0) > 0 || (delta.images?.length ?? 0) > 0,
  );

/** All text of a delta, including the names and arguments of tool calls. */
export const deltaText = (delta: ChatDelta): string => visibleText(delta) + besideText(delta);

export function visibleText(delta: ChatDelta): string {
  const calls = (delta.tool_calls ?? []).map(
    ({ function: called, custom }) =>
      (called?.name ?? '') + (called?.arguments ?? '') + (custom?.name ?? '') + (custom?.input ?? ''),
  );
  return (delta.content ?? '') + calls.join('');
}

/** Text beside the answer: reasoning that the vendor shows, and why it refuses. */
export const besideText = ({ reasoning_content: reasoning = '', refusal = '' }: ChatDelta): string =>
  reasoning + refusal;

/**
 * Counts the bytes that one answer makes a process keep. Every place that accumulates adds what it keeps; what only passes
 * through is not counted. Over the limit, it throws the error of `refuseLength`.
 */
export class Kept {
  readonly #bytesMax: number;
  readonly #refuseLength: () => Error;
  #bytes = 0;

  constructor(bytesMax: number, refuseLength: () => Error) {
    this.#bytesMax = bytesMax;
    this.#refuseLength = refuseLength;
  }

  text(text: string): void {
    this.bytes(countBytes(text));
  }

  value(value: unknown): void {
    this.bytes(bytesOf(value));
  }

  bytes(count: number): void {
    this.#bytes += count;
    if (this.#bytes > this.#bytesMax) throw this.#refuseLength();
  }
}

const textBytes = 24;
const slotBytes = 8;
const objectBytes = 48;

/** About the memory that a JSON value takes: several times the length of its JSON where its parts are small. */
export function bytesOf(value: unknown): number {
  if (typeof value === 'string') return textBytes + countBytes(value);
  if (typeof value !== 'object' || value === null) return Number.isSafeInteger(value) ? 0 : slotBytes;
  let bytes = objectBytes;
  for (const inner of Object.values(value)) bytes += slotBytes + bytesOf(inner);
  return bytes;
}

const beyondLatin = /[\u0100-\uffff]/;
const countBytes = (text: string): number => (beyondLatin.test(text) ? 2 : 1) * text.length;

const piecesMax = 1024;

/**
 * A text that grows by pieces. Text that is lengthened with `+=` keeps every piece as an object of its own until it is
 * read, which takes ten times the memory of short pieces.
 */
export class GrowingText {
  #whole = '';
  #pieces: string[] = [];

  add(piece: string): void {
    this.#pieces.push(piece);
    if (this.#pieces.length === piecesMax) this.#join();
  }

  get text(): string {
    this.#join();
    return this.#whole;
  }

  #join(): void {
    this.#whole += this.#pieces.join('');
    this.#pieces = [];
  }
}

/**
 * OpenRouter's `reasoning_details`, joined from the pieces of a stream as its own answers that do not stream have them:
 * neighbours of one type and index are one detail until it is signed; encrypted ones come whole. They go back to the
 * upstream, where also their order is checked.
 */
export class ReasoningDetails {
  readonly list: JsonRecord[] = [];
  readonly #kept: Kept;

  constructor(kept: Kept) {
    this.#kept = kept;
  }

  push(pieces: readonly JsonRecord[]): void {
    for (const piece of pieces) {
      const last = this.list.at(-1);
      if (last && continuesDetail(last, piece)) this.#join(last, piece);
      else {
        this.#kept.value(piece);
        this.list.push({ ...piece });
      }
    }
  }

  #join(last: JsonRecord, piece: JsonRecord): void {
    for (const [field, value] of Object.entries(piece)) {
      const before = last[field];
      if (detailTexts.includes(field) && typeof before === 'string' && typeof value === 'string') {
        this.#kept.text(value);
        last[field] = before + value;
      } else if ((value ?? '') !== '') {
        if (value !== before) this.#kept.value(value);
        last[field] = value;
      }
    }
  }
}

const detailTexts = ['text', 'summary'];

const continuesDetail = (last: JsonRecord, piece: JsonRecord): boolean =>
  last['type'] === piece['type'] &&
  last['index'] === piece['index'] &&
  (last['signature'] ?? undefined) === undefined &&
  detailTexts.some((field) => typeof last[field] === 'string' || typeof piece[field] === 'string');

/**
 * The parts of a call's input that have prices of their own, as one table: the price in rows, the count in usage, ledger and
 * sums, and how people are told of it. Whatever names such a part goes through this table, so that a new one is a line here,
 * beside what reads it from upstreams. A part without a price costs what input costs. A line at the end changes no text and no
 * list that is stored; one before another would.
 */
export const inputParts = [
  {
    name: 'cachedInput',
    price: 'cached_input',
    count: 'cached_tokens',
    reported: 'cached',
    label: 'cached',
    words: 'cached',
  },
  {
    name: 'cacheWrite',
    price: 'cache_write',
    count: 'cache_write_tokens',
    reported: 'written',
    label: 'cache write',
    words: 'written to the cache',
  },
  {
    name: 'cacheWrite1h',
    price: 'cache_write_1h',
    count: 'cache_write_1h_tokens',
    reported: 'writtenForHour',
    label: 'write for 1 h',
    words: 'written to it for an hour',
  },
] as const;

type InputPart = (typeof inputParts)[number];
export type PartName = InputPart['name'];
export type PartPrice = InputPart['price'];
export type PartCount = InputPart['count'];
/** As upstreams report them, in one meaning for all. */
export type ReportedPart = InputPart['reported'];

export const mapInputParts = <Key extends 'name' | 'price' | 'count', Value>(
  key: Key,
  valueOf: (part: InputPart) => Value,
): Record<InputPart[Key], Value> =>
  Object.fromEntries(inputParts.map((part) => [part[key], valueOf(part)])) as Record<InputPart[Key], Value>;

export const partPrices = inputParts.map(({ price }) => price);
export const partCounts = inputParts.map(({ count }) => count);

/** The parts that lists of a fixed order have in their middle. Those that came later stand at the end of such lists. */
const firstParts = 3;
export const laterParts: readonly InputPart[] = inputParts.slice(firstParts);
export const firstCounts = partCounts.slice(0, firstParts);
export const laterCounts = partCounts.slice(firstParts);
export const firstPrices = partPrices.slice(0, firstParts);
export const laterPrices = partPrices.slice(firstParts);

/** Tokens of a prompt by their part, together never more than it. The rest is in none. */
export type PartCounts = Partial<Record<PartCount, number | undefined>>;

/** The counts above zero: most calls have none, and rows stay short. */
export function partCountsOf(counts: PartCounts = {}): PartCounts | undefined {
  const some = partCounts.filter((name) => (counts[name] ?? 0) > 0);
  return some.length > 0 ? Object.fromEntries(some.map((name) => [name, counts[name]])) : undefined;
}

/** Clients always see the cached and written counts, and other parts if there are any. */
export type ShownCounts = { cached_tokens: number; cache_write_tokens: number } & Partial<
  Record<PartCount, number>
>;

export const showCounts = (counts: Partial<Record<PartCount, number>> = {}): ShownCounts => ({
  cached_tokens: 0,
  cache_write_tokens: 0,
  ...partCountsOf(counts),
});
