import {
  inputParts,
  mapInputParts,
  firstCounts,
  type PartName,
  type PartPrice,
  type PartCounts,
} from '../wire/chat-response.ts';
import type { ChargeEntry } from '../wire/public-api.ts';
import { tierFactor, type ServiceTiers } from '../wire/service-tier.ts';

/** Unit prices are whole numbers of pico-yuan (10^-12 yuan), which is finer than any price list. */
export type PicoYuan = bigint;
export const priceDecimals = 12;

/** The price of a model's calls. `rule`: id of the billing rule; null: no rule names the model. */
export type Price =
  | { type: 'non-billing'; rule: number | null }
  | { type: 'times-billing'; rule: number; perCall: PicoYuan }
  | TokenPrice;

/** `factors`: of the service tiers that calls may ask for. `factor`: of the one that this price is of, in millionths. */
export interface TokenPrice {
  type: 'token-billing';
  rule: number;
  tiers: Tiers;
  factors?: ServiceTiers | undefined;
  factor?: bigint | undefined;
}

/** Ascending by `above`. The first holds from the first token on. */
export type Tiers = readonly [Tier, ...Tier[]];

export interface Tier {
  above: number;
  rates: Rates;
}

export type TokenKind = 'input' | 'output' | PartName;
/** Prices per 1,000 tokens. `input`: of what is in none of its parts. */
export type Rates = Record<TokenKind, PicoYuan>;

/** The details are parts of `prompt_tokens`, together never more than it. */
export interface TokenCounts {
  prompt_tokens: number;
  completion_tokens: number;
  prompt_tokens_details?: PartCounts | undefined;
}

/** Rates as rows write them, in yuan. The price of a part that is absent is that of `input`. */
export type WrittenRates = { input: number; output: number } & Partial<Record<PartPrice, number | undefined>>;
export type WrittenTier = WrittenRates & { above: number };
export type WrittenPrice = WrittenRates & {
  tiers?: readonly WrittenTier[] | undefined;
  service_tiers?: ServiceTiers | undefined;
};

export const tiersOf = (written: WrittenPrice): Tiers => [
  { above: 0, rates: ratesOf(written) },
  ...(written.tiers ?? []).map((tier) => ({ above: tier.above, rates: ratesOf(tier) })),
];

const ratesOf = ({ input, output, ...parts }: WrittenRates): Rates => ({
  input: convertToPico(input),
  output: convertToPico(output),
  ...mapInputParts('name', ({ price }) => convertToPico(parts[price] ?? input)),
});

export const convertToPico = (yuan: number): PicoYuan => parseDecimal(yuan, priceDecimals) ?? 0n;

/** As vendors publish prices, and as people are shown and asked them; rows have them for 1,000 tokens. */
export const perMillion = (perThousand: number): string => formatRatePerMillion(convertToPico(perThousand));
export const formatRatePerMillion = (rate: PicoYuan): string => formatDecimal(rate * 1_000n, priceDecimals);

/** Undefined: it is no amount. */
export function convertToPerThousand(formatPerMillion: number | string): number | undefined {
  const pico = parseDecimal(formatPerMillion, priceDecimals - 3);
  return pico === undefined ? undefined : Number(formatDecimal(pico, priceDecimals));
}

/** The tier of a call: all of its input counts, whatever of it came from a cache. */
export const findTier = (tiers: Tiers, inputTokens: number): Tier =>
  tiers.findLast(({ above }) => inputTokens > above) ?? tiers[0];

/** The attribute that has each kind's price. */
export const priceKinds: readonly (readonly [keyof WrittenRates, TokenKind])[] = [
  ['input', 'input'],
  ['output', 'output'],
  ...inputParts.map(({ price, name }) => [price, name] as const),
];
/** One product of a call's sum. */
export type Product = readonly [kind: TokenKind, tokens: number, rate: PicoYuan];

/** The products whose sum is a call's cost, in the order in which people are shown them. */
export function listProducts({ rates }: Tier, { completion_tokens, ...input }: TokenCounts): Product[] {
  const { prompt_tokens, prompt_tokens_details: counts = {} } = input;
  const parts = inputParts.map(({ name, count }): Product => [name, counts[count] ?? 0, rates[name]]);
  const apart = parts.reduce((sum, [, tokens]) => sum + tokens, 0);
  return [
    ['input', Math.max(0, prompt_tokens - apart), rates.input],
    ...parts,
    ['output', completion_tokens, rates.output],
  ];
}

/** The exact cost of tokens, in thousandths of a pico-yuan. */
const sumOf = (tiers: Tiers, tokens: TokenCounts): bigint =>
  listProducts(findTier(tiers, tokens.prompt_tokens), tokens).reduce(
    (sum, [, count, rate]) => sum + BigInt(count) * rate,
    0n,
  );

export const factorDecimals = 6;
export const factorOne = 10n ** BigInt(factorDecimals);
/** Tokens times rate times factor that make a nano-yuan. */
export const productsPerNano = 1_000_000n * factorOne;

/** In millionths. Undefined: it has more decimals. */
export const parseFactor = (written: number | string): bigint | undefined =>
  parseDecimal(written, factorDecimals, true);

/** Of a service tier, in millionths. A tier without one costs what the standard tier costs. */
export const findFactor = (factors: ServiceTiers | undefined, tier: string | undefined): bigint =>
  parseFactor(tierFactor(factors, tier) ?? 1) ?? factorOne;

/** The price of calls in a service tier, from that of the standard one. */
export function applyServiceTier(price: Price, tier: string | undefined): Price {
  if (price.type !== 'token-billing') return price;
  const factor = findFactor(price.factors, tier);
  return { ...price, factor: factor === factorOne ? undefined : factor };
}

/** The service tier for a ledger row: upstreams may report any word, so only tiers with a factor count. Undefined: the standard one. */
export const findPricedTier = (price: Price, tier: string | undefined): string | undefined =>
  price.type === 'token-billing' && tierFactor(price.factors, tier) !== undefined ? tier : undefined;

/** An upstream may serve a call in the standard tier, whatever was asked for: the dearer of both. */
export const choosePriceToReserve = (price: Price, asked: string | undefined): Price =>
  price.type === 'token-billing' && findFactor(price.factors, asked) > factorOne
    ? applyServiceTier(price, asked)
    : price;

/** The cost of a call with these token counts, rounded once, half up. */
export function computeCost(price: Price, tokens: TokenCounts): NanoYuan {
  if (price.type === 'non-billing') return 0n;
  if (price.type === 'times-billing') return divideHalfUp(price.perCall, 1_000n);
  return divideHalfUp(sumOf(price.tiers, tokens) * (price.factor ?? factorOne), productsPerNano);
}

/** The cost of the input alone, if nothing of it is in a cache. */
export const computeInputCost = (price: Price, inputTokens: number): NanoYuan =>
  price.type === 'token-billing'
    ? computeCost(price, { prompt_tokens: inputTokens, completion_tokens: 0 })
    : 0n;

/** Tokenizers exceed the estimate from above by so much at most (decision 25). */
const estimateError = 1.05;

/**
 * The highest prices that a call can come to whose input is estimated at so much at most, times the factor: nobody knows
 * beforehand what of it is read from a cache or written to it. A tier is reachable from an estimate just below its step,
 * since a token more gives all tokens its prices.
 */
export function findHighestRates(
  { tiers, factor = factorOne }: TokenPrice,
  inputTokensMax: number,
): { input: bigint; output: bigint } {
  const reachable = tiers.filter(({ above }, at) => at === 0 || inputTokensMax * estimateError > above);
  return {
    input:
      factor *
      largest(reachable.flatMap(({ rates: { output: _output, ...inputs } }) => Object.values(inputs))),
    output: factor * largest(reachable.map(({ rates }) => rates.output)),
  };
}

const largest = (values: bigint[]): bigint => values.reduce((a, b) => (b > a ? b : a), 0n);

/** The most that a call can cost, for its reservation. */
export function computeHighestCost(price: Price, inputTokensMax: number, outputTokens: number): NanoYuan {
  if (price.type !== 'token-billing') return computeCost(price, { prompt_tokens: 0, completion_tokens: 0 });
  const { input, output } = findHighestRates(price, inputTokensMax);
  return divideHalfUp(input * BigInt(inputTokensMax) + output * BigInt(outputTokens), productsPerNano);
}

const abovePattern = /^above=([1-9]\d{0,15})$/;
const factorPattern = /^x(\d[\d.]{0,15})$/;

/**
 * Formats a price as short text. Open reservations and ledger rows store it, so that charges can be recomputed from a
 * row alone. Of a price with tiers it has the tier alone that these tokens come to; without tokens the first.
 * Prices of parts of the input stand in it only where one differs from that of input, those of later parts up to the last
 * that does: so a new part changes no text of prices that do not name it. The factor of a service tier comes last.
 */
export function formatPrice(price: Price, tokens?: Pick<TokenCounts, 'prompt_tokens'>): string {
  if (price.type === 'non-billing') return `${price.rule ?? '-'}:free`;
  if (price.type === 'times-billing') return `${price.rule}:call:${yuan(price.perCall)}`;
  const tier = formatTier(findTier(price.tiers, tokens?.prompt_tokens ?? 0));
  const times = price.factor === undefined ? [] : [`x${formatDecimal(price.factor, factorDecimals)}`];
  return [price.rule, 'tokens', tier, ...times].join(':');
}

/** The part of a price's text that is of one tier. */
export function formatTier({ above, rates }: Tier): string {
  const { input, output } = rates;
  const parts = inputParts.map(({ name }) => rates[name]);
  const last = parts.findLastIndex((rate) => rate !== input);
  const shown = last < 0 ? [] : parts.slice(0, Math.max(last + 1, firstCounts.length));
  return [...[input, output, ...shown].map(yuan), ...(above > 0 ? [`above=${above}`] : [])].join(':');
}

const yuan = (pico: PicoYuan): string => formatDecimal(pico, priceDecimals);

/** Parses the output of `formatPrice`, of earlier versions, too; undefined: the text is not a price. */
export function parsePrice(text: string): Price | undefined {
  const [ruleText = '', type, ...rest] = text.split(':');
  const rule = ruleText === '-' ? null : Number(ruleText);
  if (rule !== null && !Number.isInteger(rule)) return undefined;
  if (type === 'free') return { type: 'non-billing', rule };
  if (rule === null) return undefined;
  if (type === 'tokens') return tokenPrice(rule, rest);
  const perCall = toRate(rest[0]);
  return type === 'call' && perCall !== undefined ? { type: 'times-billing', rule, perCall } : undefined;
}

function tokenPrice(rule: number, all: string[]): Price | undefined {
  const factor = parseFactor(factorPattern.exec(all.at(-1) ?? '')?.[1] ?? '');
  const tier = parseTier((factor === undefined ? all : all.slice(0, -1)).join(':'));
  return tier && { type: 'token-billing', rule, tiers: [tier], factor };
}

/** Parses the output of `formatTier`. */
export function parseTier(text: string): Tier | undefined {
  const parts = text.split(':');
  const above = Number(abovePattern.exec(parts.at(-1) ?? '')?.[1] ?? 0);
  const rates = toRates(above > 0 ? parts.slice(0, -1) : parts);
  return rates && { above, rates };
}

/** Two rates, or those of the parts too. A text from before a part had a price lacks its rate at the end. */
function toRates(texts: string[]): Rates | undefined {
  const [input, output, ...parts] = texts.map(toRate);
  if (input === undefined || output === undefined || parts.includes(undefined)) return undefined;
  const isWhole = parts.length >= firstCounts.length && parts.length <= inputParts.length;
  if (parts.length > 0 && !isWhole) return undefined;
  const rates = new Map(inputParts.map(({ name }, at) => [name, parts[at]]));
  return { input, output, ...mapInputParts('name', ({ name }) => rates.get(name) ?? input) };
}

function toRate(text = ''): PicoYuan | undefined {
  const rate = parseDecimal(text, priceDecimals);
  return rate === undefined || rate < 0n ? undefined : rate;
}

// Prices as rows have them: what callers pay, by `charges`, and what the operator pays, by a channel's `cost`.

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
export function findRule<Rule extends Dated>(
  charges: readonly Rule[],
  model: string,
  nowMs: number,
): Rule | undefined {
  let found: Rule | undefined;
  for (const rule of charges)
    if (
      isInForce(rule, nowMs) &&
      rule.models.includes(model) &&
      (!found || startMsOf(rule) > startMsOf(found))
    )
      found = rule;
  return found;
}

export const startMsOf = ({ from }: Dated): number => from ?? -Infinity;

export const isInForce = (rule: Dated, nowMs: number): boolean => startMsOf(rule) <= nowMs;

/** The models that have a price. The setting `unpriced_models` decides whether others are free or refused. */
export const listPricedModels = (charges: readonly Dated[], nowMs: number): ReadonlySet<string> =>
  new Set(charges.flatMap((charge) => (isInForce(charge, nowMs) ? charge.models : [])));

/** The price of a model's calls. They are free if no rule in force names the model. */
export const findPrice = (charges: readonly PriceRule[], model: string, nowMs: number): Price =>
  buildPrice(findRule(charges, model, nowMs));

/** @param rule undefined: none names the model */
export function buildPrice(rule: PriceRule | undefined): Price {
  if (!rule || rule.type === 'non-billing') return { type: 'non-billing', rule: rule?.id ?? null };
  if (rule.type === 'times-billing')
    return { type: 'times-billing', rule: rule.id, perCall: convertToPico(rule.output) };
  return { type: 'token-billing', rule: rule.id, tiers: tiersOf(rule), factors: rule.service_tiers };
}

/** What a call costs the operator, in the currency that the vendor bills. Token prices are per 1,000 tokens. */
export interface BuyingPrice extends Partial<WrittenPrice> {
  /** Of a call, in addition to its tokens. */
  per_call?: number | undefined;
  /** Yuan for one unit of the currency. Absent: the currency is yuan. */
  rate?: number | undefined;
}

/** By the upstream's name of a model; `*`: for all others. */
type BuyingPrices = Readonly<Record<string, BuyingPrice>>;

export function findBuyingPrice<Price extends BuyingPrice>(
  cost: Readonly<Record<string, Price>> = {},
  upstreamModel: string,
): Price | undefined {
  const name = [upstreamModel, '*'].find((key) => Object.hasOwn(cost, key));
  return name === undefined ? undefined : cost[name];
}

/** What a call cost the operator, rounded once, half up. Undefined: the row does not say. `tier`: that served it. */
export function computeBuyingCost(
  cost: BuyingPrices | undefined,
  upstreamModel: string,
  tokens: TokenCounts,
  tier?: string,
): NanoYuan | undefined {
  const price = findBuyingPrice(cost, upstreamModel);
  if (!price) return undefined;
  const { input = 0, output = 0, per_call = 0, rate = 1, service_tiers: factors } = price;
  const byTokens = sumOf(tiersOf({ ...price, input, output }), tokens) * findFactor(factors, tier);
  const sum = byTokens + convertToPico(per_call) * 1_000n * factorOne;
  return divideHalfUp(sum * convertToPico(rate), productsPerNano * convertToPico(1));
}

// Prices that are announced: rules whose `from` has not come yet.

export interface PriceChange<Rule = PriceRule> {
  fromMs: number;
  /** Prices the models from then on. */
  rule: Rule;
  models: string[];
}

/** By time. A rule that another one precedes at its time changes nothing, so it is left out. */
export const listPriceChanges = <Rule extends Pick<PriceRule, 'models' | 'from'>>(
  charges: readonly Rule[],
  models: readonly string[],
  nowMs: number,
): PriceChange<Rule>[] =>
  charges
    .flatMap((rule) => {
      const { from = nowMs } = rule;
      if (from <= nowMs) return [];
      const named = new Set(rule.models);
      const changed = models.filter((model) => named.has(model) && findRule(charges, model, from) === rule);
      return changed.length === 0 ? [] : [{ fromMs: from, rule, models: changed }];
    })
    .toSorted((a, b) => a.fromMs - b.fromMs);

/**
 * Amounts of money are whole nano-yuan (10^-9 yuan) in a bigint, so sums are exact. Decimal yuan exist only
 * in input and output.
 */
export type NanoYuan = bigint;

const yuanDecimals = 9;
/** A decimal as people write one, blanks around it included. */
export const decimalText = /^\s*(-?)(\d{1,30})(?:\.(\d{1,40}))?(?:[eE]([+-]?\d{1,3}))?\s*$/;

/**
 * Converts a decimal to an integer count of 10^-`decimals`; undefined: the text is not a decimal. Excess
 * digits are rounded half up; with `exact`, the result is undefined instead. Numbers are read in their
 * shortest decimal form, so 0.1 is exactly a tenth.
 */
export function parseDecimal(value: string | number, decimals: number, exact = false): bigint | undefined {
  const match = decimalText.exec(String(value));
  if (!match) return undefined;
  const [, sign, whole = '', fraction = '', exponent = '0'] = match;
  const shift = decimals + Number(exponent) - fraction.length;
  const digits = BigInt(whole + fraction) * 10n ** BigInt(Math.max(shift, 0));
  const divisor = 10n ** BigInt(Math.max(-shift, 0));
  if (exact && digits % divisor !== 0n) return undefined;
  const scaled = divideHalfUp(digits, divisor);
  return sign === '-' ? -scaled : scaled;
}

/** Converts yuan with at most 9 decimals to nano-yuan; undefined: the text is not such a decimal. */
export const parseYuan = (value: string | number): NanoYuan | undefined =>
  parseDecimal(value, yuanDecimals, true);

/**
 * Formats an integer count of 10^-`decimals` as the shortest exact decimal: 1500000000 with 9 decimals gives
 * "1.5".
 */
export function formatDecimal(value: bigint, decimals: number): string {
  const digits = (value < 0n ? -value : value).toString().padStart(decimals + 1, '0');
  const whole = digits.slice(0, -decimals);
  const fraction = digits.slice(-decimals).replace(/0+$/, '');
  return `${value < 0n ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`;
}

export const formatYuan = (amount: NanoYuan): string => formatDecimal(amount, yuanDecimals);

/** Yuan as a JSON number, for responses. It is a float, so do not use it in sums. */
export const convertToYuanNumber = (amount: NanoYuan): number => Number(formatYuan(amount));

/** Divides a non-negative value and rounds half up. No other function rounds money. */
export const divideHalfUp = (value: bigint, divisor: bigint): bigint => (value + divisor / 2n) / divisor;

/** Sorts from the largest amount to the smallest. */
export const compareLargestFirst = (a: bigint, b: bigint): number => (a > b ? -1 : Number(a < b));

export const smaller = (a: bigint, b: bigint): bigint => (a < b ? a : b);
export const larger = (a: bigint, b: bigint): bigint => (a > b ? a : b);
