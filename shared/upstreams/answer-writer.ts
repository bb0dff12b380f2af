/**
 * Shared by the readers of all dialects: writes canonical chunks, gives tool calls their ids, collects the report,
 * limits the memory of one answer, and merges the token counts of all vendors.
 */
import {
  type ChatChunk,
  type ChatDelta,
  type FinishReason,
  Kept,
  inputParts,
  type ReportedPart,
  type ReportedUsage,
} from '../wire/chat-response.ts';
import { recordsIn, textIn, type JsonRecord } from '../wire/json.ts';
import type { InputTransformation, StatePart } from '../wire/turn-state.ts';
import type { AnswerReport, ReaderContext } from './dialect.ts';
import { CallArguments } from './call-arguments.ts';
import { UpstreamFailure } from './exchange.ts';
import { readFinish, type FinishReading } from './vocabulary.ts';

/** Far more than a model writes, in any script. */
const keptBytesMax = 4 * 1024 * 1024;
/** Eight times what OpenAI allows. */
export const callsMax = 1024;

export const tooLargeFailure = (): UpstreamFailure => new UpstreamFailure('too_large');

const readInputTransformation = ({ type, action, reason, id }: JsonRecord): InputTransformation => ({
  type: wordOf(type),
  action: wordOf(action),
  reason: wordOf(reason),
  id: textIn(id) || undefined,
});

/** Clients and the log get words of small letters only, so nothing else that an upstream knows leaks. */
const wordOf = (value: unknown): string | undefined => /^[a-z][a-z_]{0,39}$/.exec(textIn(value))?.[0];

type WriterContext = Pick<ReaderContext, 'identity' | 'callIds' | 'quirks' | 'noteUnknownWord'>;

export class AnswerWriter {
  readonly memory = new Kept(keptBytesMax, tooLargeFailure);
  callCount = 0;
  readonly #context: WriterContext;
  /** The choices that have their role. */
  readonly #opened = new Set<number>();
  readonly #shownIds = new Set<string>();
  /** Keyed by the index of the choice. */
  readonly #arguments = new Map<number, CallArguments>();
  readonly #usage = new UsageCounts();
  readonly #topLevel = new UsageCounts();
  #hasRuns = false;
  #serviceTier: string | undefined;
  #transformations: InputTransformation[] | undefined;
  #hasUnknownWord = false;

  constructor(context: WriterContext) {
    this.#context = context;
  }

  get hasOpened(): boolean {
    return this.#opened.size > 0;
  }

  /** An event's token counts and service tier. The tier `auto` says nothing. */
  noteUsage(counts: VendorCounts | undefined, tier?: unknown): void {
    this.#usage.push(counts);
    this.#topLevel.push(counts?.topLevel ?? counts);
    this.#hasRuns ||= counts?.topLevel !== undefined;
    if (typeof tier === 'string' && /^(?!auto$)[\w-]{1,32}$/.test(tier)) this.#serviceTier = tier;
  }

  /** Keeps what the vendor did to the input. A later list replaces an earlier one. */
  noteTransformations(list: unknown): void {
    if (Array.isArray(list))
      this.#transformations = recordsIn(list).slice(0, 20).map(readInputTransformation);
  }

  /** Returns undefined while the answer goes on. Reports the first finish reason that the vocabulary lacks. */
  readFinish(value: unknown): FinishReading | undefined {
    const { quirks, noteUnknownWord } = this.#context;
    const { means, word = '' } = readFinish(value, quirks.words) ?? {};
    if (means === 'unknown' && !this.#hasUnknownWord) noteUnknownWord?.(word);
    this.#hasUnknownWord ||= means === 'unknown';
    return means;
  }

  report(turn: readonly StatePart[]): AnswerReport {
    const hasMore = turn.some((part) => 'opaque' in part || 'phase' in part);
    const usage = this.#usage.reported;
    return {
      usage: this.#hasRuns ? { ...usage, topLevel: this.#topLevel.reported } : usage,
      serviceTier: this.#serviceTier,
      ...(this.#transformations && { inputTransformations: this.#transformations }),
      state: hasMore ? turn : undefined,
    };
  }

  writeDelta(delta: ChatDelta, logprobs: unknown = null, index = 0): ChatChunk {
    const isFirst = !this.#opened.has(index);
    this.#opened.add(index);
    const { tool_calls: pieces, ...beside } = delta;
    const calls = pieces ? this.#argumentsOf(index).push(pieces) : [];
    const shown: ChatDelta = pieces ? { ...beside, ...(calls.length > 0 && { tool_calls: calls }) } : delta;
    const whole: ChatDelta = isFirst ? { role: 'assistant', ...shown } : shown;
    return this.#buildChunk({ index, delta: whole, logprobs, finish_reason: null });
  }

  /** Clients act on `tool_calls`, so it is sent exactly when there are calls and the answer was not cut. */
  finish(reason: FinishReason, anyCalls: boolean, index = 0): ChatChunk[] {
    const opening = this.#opened.has(index) ? [] : [this.writeDelta({ content: '' }, null, index)];
    const isToolCalls = reason === 'stop' || reason === 'tool_calls';
    const agreed = isToolCalls ? (anyCalls ? 'tool_calls' : 'stop') : reason;
    const assignId = (): string => {
      if (this.callCount >= callsMax) throw tooLargeFailure();
      return this.assignCallId(undefined);
    };
    const calls = this.#arguments.get(index)?.end(assignId) ?? [];
    if (calls.length > 0)
      opening.push(
        this.#buildChunk({ index, delta: { tool_calls: calls }, logprobs: null, finish_reason: null }),
      );
    return [...opening, this.#buildChunk({ index, delta: {}, logprobs: null, finish_reason: agreed })];
  }

  /** An id that the upstream used before belongs to another call. */
  assignCallId(vendorId: string | undefined): string {
    const { callIds } = this.#context;
    const index = this.callCount;
    this.callCount += 1;
    const own = callIds.showId(vendorId, index);
    const id = this.#shownIds.has(own) ? callIds.showId(undefined, index) : own;
    this.#shownIds.add(id);
    return id;
  }

  #argumentsOf(index: number): CallArguments {
    const known = this.#arguments.get(index);
    if (known) return known;
    const created = new CallArguments((text) => this.memory.text(text));
    this.#arguments.set(index, created);
    return created;
  }

  #buildChunk(choice: ChatChunk['choices'][number]): ChatChunk {
    const { requestId, created, model } = this.#context.identity;
    const object = 'chat.completion.chunk';
    return { id: `chatcmpl-${requestId}`, object, created, model, choices: [choice], usage: null };
  }
}

// Token counts. A dialect names the vendor's fields; here the counts of all events are merged and get one meaning.
// Never takes an unknown count for zero, and does not decide whether a count is plausible.

/** The counts of one usage object, unchecked. */
export interface VendorCounts extends Partial<
  Record<ReportedPart | 'input' | 'output' | 'total' | 'reasoning', unknown>
> {
  /** Written to the cache for the usual time, where the vendor counts the times apart. `written` is for any time. */
  writtenForMinutes?: unknown;
  /** The vendor's own counts, where the others are the sum of its runs. */
  topLevel?: VendorCounts;
  /** The vendor counts thinking only in the total. */
  totalHidesThinking?: boolean | undefined;
  /**
   * `input` does not include cached and written tokens. `unsure`: decide by the counts, since no share is larger than
   * the whole.
   */
  cacheIsApart?: boolean | 'unsure';
}

type CacheCounts = Partial<Record<ReportedPart, number | undefined>>;

interface InputCounts extends CacheCounts {
  /** Includes cached and written tokens. */
  whole?: number | undefined;
  /** As the event counted it, without cached and written tokens that it left out. */
  own?: number | undefined;
}

/**
 * The counts of one answer, which may come in several events. For the input, the last event counts, with its shares:
 * some vendors estimate at the start and count at the end. For the output, the largest counts, since it only grows.
 */
export class UsageCounts {
  #input: InputCounts = {};
  #output: number | undefined;
  #reasoning: number | undefined;
  #total: number | undefined;

  push(counts: VendorCounts | undefined): void {
    if (!counts) return;
    const own = countOf(counts.input);
    const counted = cacheCountsOf(counts);
    this.#input =
      own === undefined
        ? addCacheCounts(this.#input, counted)
        : correctInput(this.#input, { ...counted, own, whole: wholeOf(own, counted, counts) });
    this.#total = countOf(counts.total) ?? this.#total;
    this.#reasoning = pickLarger(this.#reasoning, countOf(counts.reasoning));
    this.#output = pickLarger(this.#output, outputOf(this.#input, counts));
  }

  get reported(): ReportedUsage | undefined {
    const { whole, own: _own, ...counted } = this.#input;
    const output = this.#output;
    if (whole === undefined && output === undefined) return undefined;
    const remainder = this.#total === undefined ? -1 : this.#total - Number(output);
    const input = whole ?? (remainder >= 0 ? remainder : undefined);
    return { input, output, ...counted, reasoning: this.#reasoning };
  }
}

const pickLarger = (known: number | undefined, count: number | undefined): number | undefined =>
  count === undefined ? known : Math.max(known ?? count, count);

function cacheCountsOf(counts: VendorCounts): CacheCounts {
  const counted: CacheCounts = {};
  for (const { reported } of inputParts) {
    const count = countOf(counts[reported]);
    if (count !== undefined) counted[reported] = count;
  }
  const forMinutes = countOf(counts.writtenForMinutes) ?? 0;
  const { written, writtenForHour: forHour = 0 } = counted;
  if (written === undefined && forMinutes + forHour > 0) counted.written = forMinutes + forHour;
  // Tokens beyond the aggregate were counted in both lifetimes; charge them at the cheaper one.
  if (written !== undefined && forMinutes + forHour > written)
    counted.writtenForHour = Math.min(forHour, Math.max(0, written - forMinutes));
  return counted;
}

/** A negative count is invalid and must not reduce the input. */
const cacheOf = ({ cached = 0, written = 0 }: CacheCounts): number =>
  Math.max(cached, 0) + Math.max(written, 0);

function wholeOf(own: number, counted: CacheCounts, { cacheIsApart, total, output }: VendorCounts): number {
  const cache = cacheOf(counted);
  const isInTotal = cache > 0 && countOf(total) === own + cache + (countOf(output) ?? 0);
  const isApart =
    cacheIsApart === 'unsure' ? cache > own || isInTotal : (cacheIsApart ?? (cache > own && isInTotal));
  return isApart && own >= 0 ? own + cache : own;
}

/**
 * A later count replaces the earlier one, unless it says nothing: some vendors send zero when they do not know, and
 * some repeat their counts with fewer details.
 */
function correctInput(known: InputCounts, stated: InputCounts & { own: number }): InputCounts {
  if (known.whole === undefined) return { ...known, ...stated };
  const isUnknown = stated.own < 0 || (stated.own === 0 && cacheOf(stated) <= cacheOf(known));
  const isRepeat = (['own', ...inputParts.map(({ reported }) => reported)] as const).every(
    (name) => stated[name] === undefined || stated[name] === known[name],
  );
  return isUnknown || isRepeat ? known : stated;
}

/** Cache counts without an input count belong to the known input and never exceed it. */
function addCacheCounts(known: InputCounts, counted: CacheCounts): InputCounts {
  if (cacheOf(counted) === 0) return { ...counted, ...known };
  const { whole = 0 } = known;
  const { cached } = counted;
  const isMore = cached !== undefined && whole > 0 && cached > whole;
  return { ...known, ...counted, ...(isMore && { cached: whole }) };
}

/**
 * The output, including reasoning that the vendor counts separately: when it is larger than the output, or when the
 * total exceeds input and output by it. Any other excess is ignored, because some gateways add cached or written
 * tokens to a total that already has them.
 */
function outputOf(
  { whole: input = -1, cached = 0, written = 0 }: InputCounts,
  { totalHidesThinking, ...counts }: VendorCounts,
): number | undefined {
  const [output, total, reasoning = 0] = [counts.output, counts.total, counts.reasoning].map(countOf);
  if (output === undefined)
    return input >= 0 && total !== undefined && total >= input ? total - input : undefined;
  const isLarger = reasoning > output;
  if (total === undefined) return isLarger ? output + reasoning : output;
  const excess = input < 0 ? 0 : Math.max(0, total - input - output);
  if (isLarger) return output + Math.min(excess, reasoning);
  const cache = [cached, written, cached + written];
  if (excess === 0 || cache.includes(excess)) return output;
  if (totalHidesThinking && reasoning === 0) return output + excess;
  return [0, ...cache].includes(excess - reasoning) ? output + reasoning : output;
}

/** Accepts digits as text, as JSON writers of 64-bit integers send them. Returns -1, which no count can be, for NaN. */
function countOf(value: unknown): number | undefined {
  const count = typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : value;
  if (typeof count !== 'number') return undefined;
  return Number.isNaN(count) ? -1 : Math.round(count);
}
