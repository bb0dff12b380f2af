import type { ChargeEntry } from '../wire/public/catalog.ts';
import type { PromptTokensDetails } from '../wire/chat-response.ts';
import { divideHalfUp, formatDecimal, parseDecimal, type NanoYuan } from './amount.ts';

/** Unit prices are whole numbers of pico-yuan (10^-12 yuan), which is finer than any price list. */
export type PicoYuan = bigint;
const priceDecimals = 12;

/** The price of a model's calls. `rule`: id of the billing rule; null: no rule names the model. */
export type Price =
  | { type: 'non-billing'; rule: number | null }
  | { type: 'times-billing'; rule: number; perCall: PicoYuan }
  | { type: 'token-billing'; rule: number; input: PicoYuan; output: PicoYuan };

export interface TokenCounts {
  prompt_tokens: number;
  completion_tokens: number;
  /** Kept for the ledger. The price of input holds for all tokens of the prompt. */
  prompt_tokens_details?: PromptTokensDetails;
}

/**
 * The rule that prices a model: the one with the lowest id among those that name it. `charges` must be sorted
 * by id.
 */
export const ruleOf = <Rule extends Pick<ChargeEntry, 'models'>>(
  charges: readonly Rule[],
  model: string,
): Rule | undefined => charges.find((charge) => charge.models.includes(model));

/** The models that have a price. The setting `unpriced_models` decides whether others are free or refused. */
export const pricedModels = (charges: readonly Pick<ChargeEntry, 'models'>[]): ReadonlySet<string> =>
  new Set(charges.flatMap((charge) => charge.models));

/** The price of a model's calls. They are free if no rule names the model. */
export function priceOf(charges: readonly ChargeEntry[], model: string): Price {
  const rule = ruleOf(charges, model);
  if (!rule || rule.type === 'non-billing') return { type: 'non-billing', rule: rule?.id ?? null };
  const output = toPico(rule.output);
  if (rule.type === 'times-billing') return { type: 'times-billing', rule: rule.id, perCall: output };
  return { type: 'token-billing', rule: rule.id, input: toPico(rule.input), output };
}

/** The cost of a call with these token counts, rounded once, half up. */
export function costOf(price: Price, tokens: TokenCounts): NanoYuan {
  if (price.type === 'non-billing') return 0n;
  if (price.type === 'times-billing') return divideHalfUp(price.perCall, 1_000n);
  const pico = price.input * BigInt(tokens.prompt_tokens) + price.output * BigInt(tokens.completion_tokens);
  return divideHalfUp(pico, 1_000_000n);
}

/**
 * Formats a price as short text. Open reservations and ledger rows store it, so that charges can be
 * recomputed.
 */
export function formatPrice(price: Price): string {
  if (price.type === 'non-billing') return `${price.rule ?? '-'}:free`;
  if (price.type === 'times-billing')
    return `${price.rule}:call:${formatDecimal(price.perCall, priceDecimals)}`;
  const [input, output] = [price.input, price.output].map((pico) => formatDecimal(pico, priceDecimals));
  return `${price.rule}:tokens:${input}:${output}`;
}

/** Parses the output of `formatPrice`; undefined: the text is not a price. */
export function parsePrice(text: string): Price | undefined {
  const [ruleText = '', type, first = '', second = ''] = text.split(':');
  const rule = ruleText === '-' ? null : Number(ruleText);
  if (rule !== null && !Number.isInteger(rule)) return undefined;
  if (type === 'free') return { type: 'non-billing', rule };
  const a = parseDecimal(first, priceDecimals);
  if (rule === null || a === undefined) return undefined;
  if (type === 'call') return { type: 'times-billing', rule, perCall: a };
  const b = parseDecimal(second, priceDecimals);
  return type === 'tokens' && b !== undefined
    ? { type: 'token-billing', rule, input: a, output: b }
    : undefined;
}

function toPico(yuan: number): PicoYuan {
  return parseDecimal(yuan, priceDecimals) ?? 0n;
}
