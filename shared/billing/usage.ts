/**
 * Decides what an answer is charged for: takes the upstream's counts where they are plausible, and the relay's estimates elsewhere. The
 * bounds come from the request, and from the text as it was streamed.
 */
import {
  inputParts,
  laterParts,
  type ChatUsage,
  type PromptTokensDetails,
  type ReportedUsage,
} from '../wire/chat-response.ts';
import { windowTokens } from '../wire/canonical-call.ts';
import type { FoundMedium } from '../wire/media-walk.ts';
import {
  estimateInput,
  FoundMedia,
  boundaryTokens,
  findMedia,
  TextShape,
  type EstimatedCall,
} from './estimate/input-tokens.ts';
import { computeCost, type Price, type TokenCounts } from './price.ts';
import type { NanoYuan } from './money.ts';

/** Bounds for the counts of one answer. The functions are slow, so they are called only when needed. */
export interface UsageBounds {
  streamed: Pick<StreamedText, 'visible' | 'all'>;
  inputBelow(): number;
  inputUnbiased(): number;
  inputMax(): number;
  /** The limit of request and model, for all choices. */
  outputMax: number;
  isCut: boolean;
}

/** The counts that are charged and shown. `flags` names those that are not the upstream's. */
export interface CheckedUsage {
  usage: ChatUsage;
  flags: readonly UsageFlag[];
}

/** A count must reach this share of the estimate from below, which may be 16 % off. */
const shareMin = 0.7;
/** No model reads or writes more in one call. */
const tokensMax = 100_000_000;

interface Counted {
  count: number;
  fault?: UsageFault | undefined;
}

/**
 * Checks input and output each for itself. Vendors may hide reasoning that they count, so output above the streamed text is plausible up
 * to the limit. They may also show reasoning that they do not count, so only text and calls are a lower bound of a complete answer.
 * The count of an answer that broke off may be from its start.
 */
export function checkUsage(reported: ReportedUsage = {}, bounds: UsageBounds): CheckedUsage {
  const input = choosePlausible(reported, (each) => checkInput(each, bounds));
  const output = choosePlausible(reported, (each) => checkOutput(each, bounds));
  const split = splitInput(input.of, input.count);
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

/** Prefers the sum of a vendor's runs to the vendor's own count. */
function choosePlausible(
  reported: ReportedUsage,
  check: (each: ReportedUsage) => Counted,
): Counted & { of: ReportedUsage } {
  const own = { ...check(reported), of: reported };
  const { topLevel } = reported;
  if (!own.fault || !topLevel) return own;
  const whole = { ...check(topLevel), of: topLevel };
  return whole.fault ? own : whole;
}

function checkInput({ input, cached = 0, written = 0 }: ReportedUsage, bounds: UsageBounds): Counted {
  const { isCut } = bounds;
  const estimate = (fault: UsageFault): Counted => ({ count: bounds.inputUnbiased(), fault });
  if (input === undefined) return estimate(isCut ? 'partial' : 'absent');
  if (!isPossible(input)) return estimate('impossible');
  const isHigh = (count: number): boolean => count > bounds.inputUnbiased() && count > bounds.inputMax();
  const least = shareMin * bounds.inputBelow();
  if (input < least || input === 0) {
    // Some vendors leave out what their cache had.
    const whole = input + cached + written;
    const isExplained =
      whole > 0 && isPossible(cached) && isPossible(written) && whole >= least && !isHigh(whole);
    return isExplained ? { count: whole } : estimate('low');
  }
  return isHigh(input) ? estimate('high') : { count: input };
}

function checkOutput({ output }: ReportedUsage, { streamed, outputMax, isCut }: UsageBounds): Counted {
  const estimate = (fault: UsageFault): Counted => ({ count: streamed.all.unbiased, fault });
  if (output === undefined) return estimate(isCut ? 'partial' : 'absent');
  if (!isPossible(output)) return estimate('impossible');
  // A short text may have an estimate below one token, but no text has none.
  const { below, unbiased } = isCut ? streamed.all : streamed.visible;
  const isNone = output === 0 && unbiased > 0;
  if (isNone || output < shareMin * below) return estimate(isCut ? 'partial' : 'low');
  // Above the limit, the text is charged instead, but never more than the upstream reports.
  const isHigh = output > outputMax && output > streamed.all.unbiased;
  return isHigh ? estimate('high') : { count: output };
}

/**
 * Splits the input into its parts. Cache reads come before writes, and writes before writes for an hour: so tokens that an upstream
 * counts twice get the lower price. Other parts share what is left.
 */
function splitInput(
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
    // Clients tell absent from zero: upstreams that never report writes have no such count.
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
 * Says why a charged count is not the upstream's. `absent`: it reported none. `partial`: the answer broke off before the count, or after a
 * count of less than was streamed. `impossible`: below zero or beyond all models. `low`: less than the text has. `high`: more than
 * request and model allow, and than the estimate. `cache`: the cache counts do not fit the input, so none is used.
 */
type UsageFault = 'absent' | 'partial' | 'impossible' | 'low' | 'high' | 'cache';
export type UsageFlag = `${'input' | 'output'}:${UsageFault}`;

/** For log line and ledger row: `input:low output:absent`. */
export const formatFlags = (flags: readonly UsageFlag[]): string | undefined => flags.join(' ') || undefined;

/**
 * Decides whether an operator should look at the channel. Counts of an answer that broke off may be missing.
 * @param isExpected the upstream was asked for its counts
 */
export const isImplausible = (flags: readonly UsageFlag[], isExpected: boolean): boolean =>
  flags.some((flag) => !flag.endsWith(':partial') && (isExpected || !flag.endsWith(':absent')));

export interface TextTokens {
  /** Tokenizers count no fewer, within the error that `shareMin` allows. */
  below: number;
  unbiased: number;
}

/** Counts the text of an answer while it is streamed: one pass over each piece, on the hot path. */
export class StreamedText {
  readonly #visible = new TextShape();
  readonly #uncounted = new TextShape();

  /**
   * @param visible text and calls, which every vendor counts as output
   * @param uncounted what some vendors do not count: summaries of reasoning, results of their own tools, words about a refusal
   */
  add(visible: string, uncounted: string): void {
    this.#visible.add(visible);
    this.#uncounted.add(uncounted);
  }

  get visible(): TextTokens {
    return { below: this.#visible.tokensFromBelow, unbiased: Math.ceil(this.#visible.tokens) };
  }

  /** Charged when the upstream's count is not used. Contains no hidden reasoning. */
  get all(): TextTokens {
    return {
      below: this.#visible.tokensFromBelow + this.#uncounted.tokensFromBelow,
      unbiased: Math.ceil(this.#visible.tokens + this.#uncounted.tokens),
    };
  }
}

/**
 * Tokenizers count no fewer for the conversation. Counts only what every upstream reads as text: vendors rewrite tools and schemas,
 * drop earlier reasoning, and count pictures by size.
 */
export function estimateInputBelow({ request, unknown, embedding }: EstimatedCall): number {
  if (embedding) return estimateInput({ request, unknown, embedding }).below;
  const text = new TextShape();
  for (const { role, content } of request.messages) {
    const contentParts = typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? []);
    for (const part of contentParts) {
      const said = part.type === 'text' ? (part.text ?? '') : '';
      text.cut().add(role === 'assistant' ? said.slice(findThinkingEnd(said)) : said);
    }
  }
  return text.tokensFromBelow;
}

/** Chat templates drop everything before the last of these in an earlier turn. */
const thinkingEnd = /<\/(?:\w{1,16}:)?think(?:ing)?>|\[\/THINK\]/g;

function findThinkingEnd(text: string): number {
  let end = 0;
  for (const { 0: tag, index } of text.matchAll(thinkingEnd)) end = index + tag.length;
  return end;
}

/** For prompts that vendors put before the caller's. The longest known has about 700 tokens. */
const hiddenTokens = 1_000;
/** Source: OpenAI's token counting guide; its small models count a large picture at 36,835. */
const tokensPerImageMax = 50_000;

/**
 * No upstream can have read more, because a token has at least one byte. Slow: reads the whole call.
 * @param others sent upstream in addition to the call
 */
export function estimateInputMax(call: EstimatedCall, others: object = {}): number {
  const { request, unknown, native, embedding, thread } = call;
  const found = new FoundMedia(findMedia(call));
  let tokens =
    (thread?.tokensMax ?? 0) +
    hiddenTokens +
    countBytes(found.stringifyWithoutMedia([request, unknown, native?.counted, others]));
  for (const input of embedding?.inputs ?? [])
    tokens += boundaryTokens + (typeof input === 'string' ? countBytes(input) : input.length);
  const media = found.places.reduce((sum, place) => sum + boundMedia(place), 0);
  return tokens + Math.min(windowTokens, media);
}

/** A document or recording may fill any model's window. */
const boundMedia = ({ kind, value = '' }: FoundMedium): number =>
  kind === 'picture' && !/^data:(?!image\/)/i.test(value) ? tokensPerImageMax : windowTokens;

const countBytes = (text: string): number => new TextEncoder().encode(text).length;

export interface AnswerOutcome {
  /** The upstream failed, refused, or was cut off before the answer was complete. */
  failed: boolean;
  /** Content was passed on: pieces of a stream, or a complete JSON answer. */
  anyContent: boolean;
  /** The client left before the first content was passed on. */
  leftEarly?: boolean;
  /** The upstream's counts where they are plausible, else the relay's estimates. */
  usage: TokenCounts;
}

/**
 * Always charges a search that was made, in whole nano-yuan, so the sum isn't rounded again. A call that failed without output costs
 * nothing else, even if the upstream reported usage. Any other call is charged for its usage, even above the reserved amount, and even
 * if the client left, because the upstream wrote on. A price per call is charged once, if the client received content.
 */
export function computeCharge(price: Price, outcome: AnswerOutcome, search: NanoYuan = 0n): NanoYuan {
  if (costsNothing(outcome)) return search;
  if (price.type === 'times-billing' && (!outcome.anyContent || outcome.leftEarly)) return search;
  return computeCost(price, outcome.usage) + search;
}

/** Such a call costs nothing, and its plan slot is released. */
export const costsNothing = ({ failed, anyContent }: Pick<AnswerOutcome, 'failed' | 'anyContent'>): boolean =>
  failed && !anyContent;
