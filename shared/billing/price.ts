import type { ChargeEntry } from '../wire/catalog.ts';
import { divideHalfUp, formatDecimal, parseDecimal, type NanoYuan } from './amount.ts';

/** Unit prices are kept in pico-yuan (10^-12 yuan): finer than any price list, still whole numbers. */
export type PicoYuan = bigint;
const priceDecimals = 12;

/** What a model's calls cost. `rule` is the id of the billing rule; null when none names the model. */
export type Price =
  | { type: 'non-billing'; rule: number | null }
  | { type: 'times-billing'; rule: number; perCall: PicoYuan }
  | { type: 'token-billing'; rule: number; input: PicoYuan; output: PicoYuan };

export interface TokenCounts {
  prompt_tokens: number;
  completion_tokens: number;
}

/** The rule that prices a model: of those that name it, the one with the lowest id. `charges` are sorted by id. */
export const ruleOf = <Rule extends Pick<ChargeEntry, 'models'>>(
  charges: readonly Rule[],
  model: string,
): Rule | undefined => charges.find((charge) => charge.models.includes(model));

/** The models that a rule prices. All others are free, or refused: the setting `unpriced_models`. */
export const pricedModels = (charges: readonly Pick<ChargeEntry, 'models'>[]): ReadonlySet<string> =>
  new Set(charges.flatMap((charge) => charge.models));

/** What a model's calls cost. Without a rule they are free. */
export function priceOf(charges: readonly ChargeEntry[], model: string): Price {
  const rule = ruleOf(charges, model);
  if (!rule || rule.type === 'non-billing') return { type: 'non-billing', rule: rule?.id ?? null };
  const output = toPico(rule.output);
  if (rule.type === 'times-billing') return { type: 'times-billing', rule: rule.id, perCall: output };
  return { type: 'token-billing', rule: rule.id, input: toPico(rule.input), output };
}

/** What a call costs by its token counts; one rounding, half up. */
export function costOf(price: Price, tokens: TokenCounts): NanoYuan {
  if (price.type === 'non-billing') return 0n;
  if (price.type === 'times-billing') return divideHalfUp(price.perCall, 1_000n);
  const pico = price.input * BigInt(tokens.prompt_tokens) + price.output * BigInt(tokens.completion_tokens);
  return divideHalfUp(pico, 1_000_000n);
}

/** A price as short text: open reservations and ledger rows carry it, so that a bill can be recomputed. */
export function formatPrice(price: Price): string {
  if (price.type === 'non-billing') return `${price.rule ?? '-'}:free`;
  if (price.type === 'times-billing')
    return `${price.rule}:call:${formatDecimal(price.perCall, priceDecimals)}`;
  const [input, output] = [price.input, price.output].map((pico) => formatDecimal(pico, priceDecimals));
  return `${price.rule}:tokens:${input}:${output}`;
}

/** Reads what `formatPrice` writes; undefined: the text is no price. */
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
