import {
  inputParts,
  laterParts,
  type ChatUsage,
  type PromptTokensDetails,
  type ReportedUsage,
} from '../wire/chat-response.ts';
import { windowTokens } from '../wire/canonical-call.ts';
import type { MediaPlace } from '../wire/media-walk.ts';
import {
  estimateInput,
  FoundMedia,
  boundaryTokens,
  findMedia,
  TextShape,
  type EstimatedCall,
} from './estimate/input-tokens.ts';
import { type NanoYuan, computeCost, type Price, type TokenCounts } from './price.ts';

/** What the counts of one answer are compared with. Functions are slow and called only when needed. */
export interface UsageBounds {
  streamed: Pick<StreamedText, 'visible' | 'all'>;
  inputBelow(): number;
  inputUnbiased(): number;
  inputMax(): number;
  /** The most that request and model allow, for all choices. */
  outputMax: number;
  isCut: boolean;
}

/** The counts that are charged and shown, and which of them are not the upstream's. */
export interface CheckedUsage {
  usage: ChatUsage;
  flags: readonly UsageFlag[];
}

/** Share of the estimate from below that a count must reach: estimates are up to 16 % off. */
const shareMin = 0.7;
/** More than any model can read or write in one call. */
const tokensMax = 100_000_000;

interface Counted {
  count: number;
  fault?: UsageFault | undefined;
}

/**
 * Takes each count that the upstream reported and that is plausible, and estimates the others, input and output each for
 * itself. Reasoning may be hidden, so output above the streamed text is plausible up to the limit. It may also be shown
 * and not counted, so of a whole answer only text and calls say how many tokens there are at least. The count of one that
 * broke off may be from its start.
 */
export function checkUsage(reported: ReportedUsage = {}, bounds: UsageBounds): CheckedUsage {
  const input = firstPlausible(reported, (each) => inputOf(each, bounds));
  const output = firstPlausible(reported, (each) => outputOf(each, bounds));
  const split = splitOf(input.of, input.count);
  const inputFault = input.fault ?? split.fault;
  const flags: UsageFlag[] = [];
  if (inputFault) flags.push(`input:${inputFault}`);
  if (output.fault) flags.push(`output:${output.fault}`);
  const reasoning = output.fault ? 0 : Math.max(0, Math.min(output.of.reasoning ?? 0, output.count));
  return {
    flags,
    usage: {
      prompt_tokens: input.count,
      completion_tokens: output.count,
      total_tokens: input.count + output.count,
      prompt_tokens_details: split.details,
      completion_tokens_details: { reasoning_tokens: reasoning },
    },
  };
}

/** The sum of a vendor's runs, else its own count, else an estimate. */
function firstPlausible(
  reported: ReportedUsage,
  counted: (each: ReportedUsage) => Counted,
): Counted & { of: ReportedUsage } {
  const own = { ...counted(reported), of: reported };
  const { topLevel } = reported;
  if (!own.fault || !topLevel) return own;
  const whole = { ...counted(topLevel), of: topLevel };
  return whole.fault ? own : whole;
}

function inputOf({ input, cached = 0, written = 0 }: ReportedUsage, bounds: UsageBounds): Counted {
  const { isCut } = bounds;
  const estimated = (fault: UsageFault): Counted => ({ count: bounds.inputUnbiased(), fault });
  if (input === undefined) return estimated(isCut ? 'partial' : 'absent');
  if (!isPossible(input)) return estimated('impossible');
  const isHigh = (count: number): boolean => count > bounds.inputUnbiased() && count > bounds.inputMax();
  const least = shareMin * bounds.inputBelow();
  if (input < least || input === 0) {
    // A vendor that leaves out what its cache held.
    const whole = input + cached + written;
    const isExplained =
      whole > 0 && isPossible(cached) && isPossible(written) && whole >= least && !isHigh(whole);
    return isExplained ? { count: whole } : estimated('low');
  }
  return isHigh(input) ? estimated('high') : { count: input };
}

function outputOf({ output }: ReportedUsage, { streamed, outputMax, isCut }: UsageBounds): Counted {
  const estimated = (fault: UsageFault): Counted => ({ count: streamed.all.unbiased, fault });
  if (output === undefined) return estimated(isCut ? 'partial' : 'absent');
  if (!isPossible(output)) return estimated('impossible');
  // One token is not below the estimate of a short text, but none is too few for any.
  const { below, unbiased } = isCut ? streamed.all : streamed.visible;
  const isNone = output === 0 && unbiased > 0;
  if (isNone || output < shareMin * below) return estimated(isCut ? 'partial' : 'low');
  // Above the limit the text shows what was written; its estimate must not be more than the upstream itself asks for.
  const isHigh = output > outputMax && output > streamed.all.unbiased;
  return isHigh ? estimated('high') : { count: output };
}

/**
 * The counts of parts of the input, whose total is what is charged. Reads come before writes and writes before
 * writes for an hour: what an upstream counts twice is then never in the part with the higher price. Other parts have what
 * is left.
 */
function splitOf(
  reported: ReportedUsage,
  input: number,
): { details: PromptTokensDetails; fault?: UsageFault } {
  const { cached = 0, written, writtenForHour = 0 } = reported;
  const isUsable = inputParts.every((part) => isPossible(reported[part.reported] ?? 0)) && cached <= input;
  if (!isUsable) return { details: { cached_tokens: 0 }, fault: 'cache' };
  const wrote = Math.min(written ?? 0, input - cached);
  const forHour = Math.min(writtenForHour, wrote);
  const details: PromptTokensDetails = {
    cached_tokens: cached,
    // Absent and zero differ for clients: upstreams that never report writes have no such count.
    ...(written !== undefined && { cache_write_tokens: wrote - forHour }),
    ...(forHour > 0 && { cache_write_1h_tokens: forHour }),
  };
  let left = input - cached - wrote;
  for (const { reported: name, count } of laterParts) {
    const tokens = Math.min(reported[name] ?? 0, left);
    left -= tokens;
    if (tokens > 0) details[count] = tokens;
  }
  return { details };
}

const isPossible = (count: number): boolean => count >= 0 && count <= tokensMax;

/**
 * Why a charged count is not the upstream's own. `absent`: it reported none. `partial`: the answer broke off before the
 * count, or after a count of less than was streamed. `impossible`: below zero or beyond all models. `low`: less than the
 * text has. `high`: more than request and model allow, and than the estimate. `cache`: the cache counts do not fit the
 * input, so none is used.
 */
type UsageFault = 'absent' | 'partial' | 'impossible' | 'low' | 'high' | 'cache';
export type UsageFlag = `${'input' | 'output'}:${UsageFault}`;

/** As the log line and the ledger row have them: `input:low output:absent`. Undefined: none. */
export const formatFlags = (flags: readonly UsageFlag[]): string | undefined => flags.join(' ') || undefined;

/**
 * Whether an operator should look at the channel. An answer that broke off has no whole count, and a channel whose row
 * says that it reports none is known. `isExpected`: the upstream was asked for its counts.
 */
export const isImplausible = (flags: readonly UsageFlag[], isExpected: boolean): boolean =>
  flags.some((flag) => !flag.endsWith(':partial') && (isExpected || !flag.endsWith(':absent')));

export interface TextTokens {
  /** No tokenizer counts fewer, apart from the error that `shareMin` allows for. */
  below: number;
  unbiased: number;
}

/** The text of one answer, counted while it is streamed. One pass over each piece, on the hot path. */
export class StreamedText {
  readonly #visible = new TextShape();
  readonly #beside = new TextShape();

  /**
   * `visible`: text and calls, which every vendor counts as output. `beside`: what some write and do not count, such as
   * summaries of reasoning, results of their own tools, words about a refusal.
   */
  add(visible: string, beside: string): void {
    this.#visible.add(visible);
    this.#beside.add(beside);
  }

  get visible(): TextTokens {
    return { below: this.#visible.tokensFromBelow, unbiased: Math.ceil(this.#visible.tokens) };
  }

  /** What is charged when the upstream's count is not used. Hidden reasoning is not in it. */
  get all(): TextTokens {
    const [visible, beside] = [this.#visible, this.#beside];
    return {
      below: visible.tokensFromBelow + beside.tokensFromBelow,
      unbiased: Math.ceil(visible.tokens + beside.tokens),
    };
  }
}

/**
 * No tokenizer counts fewer for the conversation. Only what every upstream reads as text: tools and schemas are
 * rewritten, earlier reasoning is left out, pictures have a price of their own.
 */
export function estimateInputBelow({ request, unknown, embedding }: EstimatedCall): number {
  if (embedding) return estimateInput({ request, unknown, embedding }).below;
  const text = new TextShape();
  for (const { role, content } of request.messages) {
    const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? []);
    for (const part of parts) {
      const said = part.type === 'text' ? (part.text ?? '') : '';
      text.cut().add(role === 'assistant' ? said.slice(endOfThinking(said)) : said);
    }
  }
  return text.tokensFromBelow;
}

/** Templates of chat models leave out what an earlier turn has before the last of these. */
const thinkingEnd = /<\/(?:\w{1,16}:)?think(?:ing)?>|\[\/THINK\]/g;

function endOfThinking(text: string): number {
  let end = 0;
  for (const { 0: tag, index } of text.matchAll(thinkingEnd)) end = index + tag.length;
  return end;
}

/** Prompts that vendors put before the caller's. The longest known has about 700 tokens. */
const hiddenTokens = 1_000;
/** Source: OpenAI's token counting guide; its small models count a large picture at 36,835. */
const tokensPerImageMax = 50_000;

/**
 * No upstream can have read more: a token has at least one byte. Slow: reads the whole call.
 * @param others what went up beside the call
 */
export function estimateInputMax(call: EstimatedCall, others: object = {}): number {
  const { request, unknown, native, embedding } = call;
  const found = new FoundMedia(findMedia(call));
  let tokens =
    hiddenTokens + bytesOf(found.stringifyWithoutMedia([request, unknown, native?.counted, others]));
  for (const input of embedding?.inputs ?? [])
    tokens += boundaryTokens + (typeof input === 'string' ? bytesOf(input) : input.length);
  const media = found.places.reduce((sum, place) => sum + mediaMax(place), 0);
  return tokens + Math.min(windowTokens, media);
}

/** A document or recording may fill any model's window. */
const mediaMax = ({ kind, value = '' }: MediaPlace): number =>
  kind === 'picture' && !/^data:(?!image\/)/i.test(value) ? tokensPerImageMax : windowTokens;

/** In UTF-8. */
const bytesOf = (text: string): number => new TextEncoder().encode(text).length;

export interface AnswerOutcome {
  /** The upstream failed, refused, or was cut off before the answer was complete. */
  failed: boolean;
  /** Content was passed on: pieces of a stream, or the whole of a JSON answer. */
  anyContent: boolean;
  /** The client had left before the first content was passed on. Absent: it had not. */
  leftEarly?: boolean;
  /** The upstream's counts where they are plausible, else the relay's estimates. */
  usage: TokenCounts;
}

/**
 * The charge for a call. A search that was made is always charged; its price is in whole nano-yuan, so the sum isn't rounded again.
 * A call that failed without output costs nothing else, even if the upstream reported usage. Any other call is charged for its usage,
 * even above the reserved amount, and even if the client has left, because the upstream wrote on. A price per call is charged once, if
 * the client received content.
 */
export function computeCharge(price: Price, outcome: AnswerOutcome, search: NanoYuan = 0n): NanoYuan {
  if (costsNothing(outcome)) return search;
  if (price.type === 'times-billing' && (!outcome.anyContent || outcome.leftEarly)) return search;
  return computeCost(price, outcome.usage) + search;
}

/** Whether the model's call is treated as not made: it costs nothing, and its plan slot is released. */
export const costsNothing = ({ failed, anyContent }: Pick<AnswerOutcome, 'failed' | 'anyContent'>): boolean =>
  failed && !anyContent;
