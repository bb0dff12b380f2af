/** Prices as rows have them: what callers pay, by `charges`, and what the operator pays, by a channel's `cost`. */
import type { ChargeEntry } from '../wire/public/catalog.ts';
import { divideHalfUp, type NanoYuan } from './amount.ts';
import { sumOf, tiersOf, toPico, type Price, type TokenCounts, type WrittenPrice } from './price.ts';

/** A billing rule: what of a row of `charges` decides prices and limits. */
export interface PriceRule extends ChargeEntry, WrittenPrice {
  /** Epoch milliseconds: from then on it is in force. Absent: always. */
  from?: number | undefined;
  max_output_tokens?: number | undefined;
  default_output_tokens?: number | undefined;
  image_tokens?: number | undefined;
  input_factor?: number | undefined;
}

type Dated = Pick<PriceRule, 'models' | 'from'>;

/**
 * The rule that prices a model at a time: of those in force that name it the one with the latest `from`, then the one
 * with the lowest id. `charges` must be sorted by id.
 */
export function ruleOf<Rule extends Dated>(
  charges: readonly Rule[],
  model: string,
  nowMs: number,
): Rule | undefined {
  let found: Rule | undefined;
  for (const rule of charges)
    if (isInForce(rule, nowMs) && rule.models.includes(model) && (!found || sinceMs(rule) > sinceMs(found)))
      found = rule;
  return found;
}

export const sinceMs = ({ from }: Dated): number => from ?? -Infinity;

export const isInForce = (rule: Dated, nowMs: number): boolean => sinceMs(rule) <= nowMs;

/** The models that have a price. The setting `unpriced_models` decides whether others are free or refused. */
export const pricedModels = (charges: readonly Dated[], nowMs: number): ReadonlySet<string> =>
  new Set(charges.flatMap((charge) => (isInForce(charge, nowMs) ? charge.models : [])));

/** The price of a model's calls. They are free if no rule in force names the model. */
export function priceOf(charges: readonly PriceRule[], model: string, nowMs: number): Price {
  const rule = ruleOf(charges, model, nowMs);
  if (!rule || rule.type === 'non-billing') return { type: 'non-billing', rule: rule?.id ?? null };
  if (rule.type === 'times-billing')
    return { type: 'times-billing', rule: rule.id, perCall: toPico(rule.output) };
  return { type: 'token-billing', rule: rule.id, tiers: tiersOf(rule) };
}

/** What the rule that prices a model says about the size of calls. Absent: the rule says nothing. */
export interface RuleLimits {
  /** The model's own maximum of one answer. */
  maxOutputTokens?: number | undefined;
  /** What one answer may have where the client sets no limit. */
  defaultOutputTokens?: number | undefined;
  /** Input tokens of one picture. */
  imageTokens?: number | undefined;
  /** Multiplies the estimate of the input from above. At least 1. */
  inputFactor: number;
}

export function ruleLimits(charges: readonly PriceRule[], model: string, nowMs: number): RuleLimits {
  const rule = ruleOf(charges, model, nowMs);
  return {
    maxOutputTokens: rule?.max_output_tokens,
    defaultOutputTokens: rule?.default_output_tokens,
    imageTokens: rule?.image_tokens,
    inputFactor: rule?.input_factor ?? 1,
  };
}

/** What a call costs the operator, in the currency that the vendor bills. Token prices are per 1,000 tokens. */
export interface BuyingPrice extends Partial<WrittenPrice> {
  /** Of a call, in addition to its tokens. */
  per_call?: number | undefined;
  /** Yuan for one unit of the currency. Absent: the currency is yuan. */
  rate?: number | undefined;
}

/** By the upstream's name of a model; `*`: for all others. */
export type BuyingPrices = Readonly<Record<string, BuyingPrice>>;

export function buyingPriceOf<Price extends BuyingPrice>(
  cost: Readonly<Record<string, Price>> = {},
  upstreamModel: string,
): Price | undefined {
  const name = [upstreamModel, '*'].find((key) => Object.hasOwn(cost, key));
  return name === undefined ? undefined : cost[name];
}

/** What a call cost the operator, rounded once, half up. Undefined: the row does not say. */
export function boughtOf(
  cost: BuyingPrices | undefined,
  upstreamModel: string,
  tokens: TokenCounts,
): NanoYuan | undefined {
  const price = buyingPriceOf(cost, upstreamModel);
  if (!price) return undefined;
  const { input = 0, output = 0, per_call = 0, rate = 1 } = price;
  const sum = sumOf(tiersOf({ ...price, input, output }), tokens) + toPico(per_call) * 1_000n;
  return divideHalfUp(sum * toPico(rate), 1_000_000n * toPico(1));
}
