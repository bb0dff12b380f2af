/**
 * Money, prices and what calls cost. Amounts are whole nano-yuan, rates whole pico-yuan, and a charge is rounded once, in
 * `divideHalfUp`. Prices come from rows of `charges` (for callers) and a channel's `cost` (for the operator), and go to the ledger as
 * text.
 */
import {
  inputParts,
  mapInputParts,
  firstCounts,
  type PartName,
  type PartPrice,
  type PartCounts,
} from '../wire/chat-response.ts';
import { type NanoYuan, divideHalfUp, formatDecimal, parseDecimal } from './money.ts';
import type { ChargeEntry } from '../wire/public-api.ts';
import { findOpenWindow, type HourWindow } from './schedule.ts';
import { tierFactor, type ServiceTiers } from '../wire/service-tier.ts';

/** Unit prices are whole numbers of pico-yuan (10^-12 yuan), which is finer than any price list. */
export type PicoYuan = bigint;
export const priceDecimals = 12;

/** The price of a model's calls. `rule` is null if no billing rule names the model. */
export type Price = { type: 'non-billing'; rule: number | null } | CallPrice | TokenPrice;

interface Agreed {
  /** Multiplies all rates of the price, in units of 10^-18; by default 1. */
  factor?: bigint | undefined;
  /** The name of the window that was open. */
  window?: string | undefined;
}

export interface CallPrice extends Agreed {
  type: 'times-billing';
  rule: number;
  perCall: PicoYuan;
}

/** `factors` has the service tiers that calls may ask for; `serviceFactor` is that of this price's tier. */
export interface TokenPrice extends Agreed {
  type: 'token-billing';
  rule: number;
  tiers: Tiers;
  factors?: ServiceTiers | undefined;
  serviceFactor?: bigint | undefined;
}

/** Ascending by `above`. The first begins at 0. */
export type Tiers = readonly [Tier, ...Tier[]];

export interface Tier {
  above: number;
  rates: Rates;
}

export type TokenKind = 'input' | 'output' | PartName;
/** Prices per 1,000 tokens. `input` is for tokens that are in none of its parts. */
export type Rates = Record<TokenKind, PicoYuan>;

/** `prompt_tokens` contains the details. */
export interface TokenCounts {
  prompt_tokens: number;
  completion_tokens: number;
  prompt_tokens_details?: PartCounts | undefined;
}

/** Rates as rows write them, in yuan. A part without a price costs what `input` costs. */
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

export const convertToPico = (rate: number): PicoYuan => parseDecimal(rate, priceDecimals) ?? 0n;

/** For JSON. Multiplies exactly and converts to a number at the end. */
export const multiplyRate = (rate: PicoYuan, factor: bigint): number =>
  Number(formatDecimal(rate * factor, priceDecimals + factorDecimals));

/** Vendors publish prices per million tokens, and people see and type them so. Rows have them per 1,000. */
export const perMillion = (perThousand: number): string => formatRatePerMillion(convertToPico(perThousand));
export const formatRatePerMillion = (rate: PicoYuan): string => formatDecimal(rate * 1_000n, priceDecimals);

export function convertToPerThousand(perMillionTokens: number | string): number | undefined {
  const pico = parseDecimal(perMillionTokens, priceDecimals - 3);
  return pico === undefined ? undefined : Number(formatDecimal(pico, priceDecimals));
}

/** All input tokens count, cached ones too. */
export const findTier = (tiers: Tiers, inputTokens: number): Tier =>
  tiers.findLast(({ above }) => inputTokens > above) ?? tiers[0];

/** Each kind of token with the attribute of its price. */
export const priceKinds: readonly (readonly [keyof WrittenRates, TokenKind])[] = [
  ['input', 'input'],
  ['output', 'output'],
  ...inputParts.map(({ price, name }) => [price, name] as const),
];

export type Product = readonly [kind: TokenKind, tokens: number, rate: PicoYuan];

/** Lists the products whose sum is a call's cost, in the order in which people see them. */
export function listProducts({ rates }: Tier, { completion_tokens, ...input }: TokenCounts): Product[] {
  const { prompt_tokens, prompt_tokens_details: counts = {} } = input;
  const parts = inputParts.map(({ name, count }): Product => [name, counts[count] ?? 0, rates[name]]);
  const ofParts = parts.reduce((sum, [, tokens]) => sum + tokens, 0);
  return [
    ['input', Math.max(0, prompt_tokens - ofParts), rates.input],
    ...parts,
    ['output', completion_tokens, rates.output],
  ];
}

/** Returns thousandths of a pico-yuan. */
const sumProducts = (tiers: Tiers, tokens: TokenCounts): bigint =>
  listProducts(findTier(tiers, tokens.prompt_tokens), tokens).reduce(
    (sum, [, count, rate]) => sum + BigInt(count) * rate,
    0n,
  );

/** Rows write factors with at most 6 decimals. Up to three of them are multiplied, exactly. */
export const rowFactorDecimals = 6;
export const factorDecimals = 3 * rowFactorDecimals;
export const factorOne = 10n ** BigInt(factorDecimals);
/** Tokens times rate times factor that make a nano-yuan. */
export const productsPerNano = 1_000_000n * factorOne;

/** Returns undefined if the factor has too many decimals. */
export const parseFactor = (written: number | string): bigint | undefined =>
  parseDecimal(written, factorDecimals, true);

export const formatFactor = (factor: bigint): string => formatDecimal(factor, factorDecimals);

const multiplyFactors = (a: bigint, b: bigint): bigint => (a * b) / factorOne;

/** Returns the product of all factors of a price, its service tier's included. */
export function findFactor(price: Price): bigint {
  if (price.type === 'non-billing') return factorOne;
  const { factor = factorOne } = price;
  return price.type === 'token-billing' ? multiplyFactors(factor, price.serviceFactor ?? factorOne) : factor;
}

/** A tier without a factor costs what the standard tier costs. */
export const findServiceFactor = (factors: ServiceTiers | undefined, tier: string | undefined): bigint =>
  parseFactor(tierFactor(factors, tier) ?? 1) ?? factorOne;

export function applyServiceTier(price: Price, tier: string | undefined): Price {
  if (price.type !== 'token-billing') return price;
  const serviceFactor = findServiceFactor(price.factors, tier);
  return { ...price, serviceFactor: serviceFactor === factorOne ? undefined : serviceFactor };
}

/** The price in the standard tier and in each of its service tiers. */
export const listServicePrices = (price: TokenPrice): Price[] =>
  [undefined, ...Object.keys(price.factors ?? {})].map((tier) => applyServiceTier(price, tier));

/** Upstreams may report any word, so a ledger row names only tiers that have a factor. */
export const findPricedTier = (price: Price, tier: string | undefined): string | undefined =>
  price.type === 'token-billing' && tierFactor(price.factors, tier) !== undefined ? tier : undefined;

/** An upstream may serve any call in the standard tier, so the reservation takes the dearer price. */
export const choosePriceToReserve = (price: Price, asked: string | undefined): Price =>
  price.type === 'token-billing' && findServiceFactor(price.factors, asked) > factorOne
    ? applyServiceTier(price, asked)
    : price;

export function computeCost(price: Price, tokens: TokenCounts): NanoYuan {
  if (price.type === 'non-billing') return 0n;
  const products = price.type === 'times-billing' ? price.perCall * 1_000n : sumProducts(price.tiers, tokens);
  return divideHalfUp(products * findFactor(price), productsPerNano);
}

/** Assumes that no input is in a cache. */
export const computeInputCost = (price: Price, inputTokens: number): NanoYuan =>
  price.type === 'token-billing'
    ? computeCost(price, { prompt_tokens: inputTokens, completion_tokens: 0 })
    : 0n;

/** Tokenizers exceed the estimate from above by at most 5 % (decision 25). */
const estimateError = 1.05;

/**
 * Finds the highest rates that a call may be charged, times the factor: how much of the input a cache has is unknown beforehand. An
 * estimate just below a tier's step may reach the tier, and then all tokens have its prices.
 */
export function findHighestRates(
  price: TokenPrice,
  inputTokensMax: number,
): { input: bigint; output: bigint } {
  const { tiers } = price;
  const factor = findFactor(price);
  const reachable = tiers.filter(({ above }, at) => at === 0 || inputTokensMax * estimateError > above);
  return {
    input:
      factor *
      findLargest(reachable.flatMap(({ rates: { output: _output, ...inputs } }) => Object.values(inputs))),
    output: factor * findLargest(reachable.map(({ rates }) => rates.output)),
  };
}

const findLargest = (values: bigint[]): bigint => values.reduce((a, b) => (b > a ? b : a), 0n);

export function computeHighestCost(price: Price, inputTokensMax: number, outputTokens: number): NanoYuan {
  if (price.type !== 'token-billing') return computeCost(price, { prompt_tokens: 0, completion_tokens: 0 });
  const { input, output } = findHighestRates(price, inputTokensMax);
  return divideHalfUp(input * BigInt(inputTokensMax) + output * BigInt(outputTokens), productsPerNano);
}

const abovePattern = /^above=([1-9]\d{0,15})$/;
const windowPattern = /^window=([a-z][a-z0-9_-]{0,31})$/;
const factorPattern = /^x(\d[\d.]{0,31})$/;

/**
 * Formats a price for open reservations and ledger rows, so that a charge can be recomputed from its row alone. The text has the one
 * tier that the tokens reach, or the first. It names prices of input parts only if one differs from the input's, and later parts only
 * up to the last that differs, so a new kind of part does not change older texts. The window and the factor come last.
 */
export function formatPrice(price: Price, tokens?: Pick<TokenCounts, 'prompt_tokens'>): string {
  if (price.type === 'non-billing') return `${price.rule ?? '-'}:free`;
  const factor = findFactor(price);
  const times = [
    ...(price.window === undefined ? [] : [`window=${price.window}`]),
    ...(factor === factorOne ? [] : [`x${formatFactor(factor)}`]),
  ];
  if (price.type === 'times-billing')
    return [price.rule, 'call', formatRate(price.perCall), ...times].join(':');
  const tier = formatTier(findTier(price.tiers, tokens?.prompt_tokens ?? 0));
  return [price.rule, 'tokens', tier, ...times].join(':');
}

export function formatTier({ above, rates }: Tier): string {
  const { input, output } = rates;
  const parts = inputParts.map(({ name }) => rates[name]);
  const last = parts.findLastIndex((rate) => rate !== input);
  const shown = last < 0 ? [] : parts.slice(0, Math.max(last + 1, firstCounts.length));
  return [...[input, output, ...shown].map(formatRate), ...(above > 0 ? [`above=${above}`] : [])].join(':');
}

const formatRate = (pico: PicoYuan): string => formatDecimal(pico, priceDecimals);

/** Parses the output of `formatPrice`, also of earlier versions. */
export function parsePrice(text: string): Price | undefined {
  const [ruleText = '', type, ...fields] = text.split(':');
  const rule = ruleText === '-' ? null : Number(ruleText);
  if (rule !== null && !Number.isInteger(rule)) return undefined;
  if (type === 'free') return { type: 'non-billing', rule };
  if (rule === null) return undefined;
  const factor = parseFactor(factorPattern.exec(fields.at(-1) ?? '')?.[1] ?? '');
  if (factor !== undefined) fields.pop();
  const name = windowPattern.exec(fields.at(-1) ?? '')?.[1];
  if (name !== undefined) fields.pop();
  if (type === 'tokens') {
    const tier = parseTier(fields.join(':'));
    return tier && { type: 'token-billing', rule, tiers: [tier], factor, window: name };
  }
  const perCall = parseRate(fields[0]);
  return type === 'call' && perCall !== undefined
    ? { type: 'times-billing', rule, perCall, factor, window: name }
    : undefined;
}

export function parseTier(text: string): Tier | undefined {
  const parts = text.split(':');
  const above = Number(abovePattern.exec(parts.at(-1) ?? '')?.[1] ?? 0);
  const rates = parseRates(above > 0 ? parts.slice(0, -1) : parts);
  return rates && { above, rates };
}

/** Texts have two rates, or those of the parts too. An older text lacks later parts at its end. */
function parseRates(texts: string[]): Rates | undefined {
  const [input, output, ...parts] = texts.map(parseRate);
  if (input === undefined || output === undefined || parts.includes(undefined)) return undefined;
  const isWhole = parts.length >= firstCounts.length && parts.length <= inputParts.length;
  if (parts.length > 0 && !isWhole) return undefined;
  const rates = new Map(inputParts.map(({ name }, at) => [name, parts[at]]));
  return { input, output, ...mapInputParts('name', ({ name }) => rates.get(name) ?? input) };
}

function parseRate(text = ''): PicoYuan | undefined {
  const rate = parseDecimal(text, priceDecimals);
  return rate === undefined || rate < 0n ? undefined : rate;
}

// Prices as rows have them: what callers pay, by `charges`, and what the operator pays, by a channel's `cost`.

/** A billing rule, as a row of `charges` has it. */
export interface PriceRule extends ChargeEntry, WrittenPrice {
  windows?: readonly PriceWindow[] | undefined;
  /** The rule is in force from this time on, in epoch milliseconds. */
  from?: number | undefined;
  max_output_tokens?: number | undefined;
  default_output_tokens?: number | undefined;
  image_tokens?: number | undefined;
  input_factor?: number | undefined;
}

type Dated = Pick<PriceRule, 'models' | 'from'>;

/**
 * Finds the rule that prices a model at a time: among the rules in force that name it, the latest `from` wins, then the lowest id.
 * @param charges sorted by id
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

/** The setting `unpriced_models` decides whether other models are free or refused. */
export const listPricedModels = (charges: readonly Dated[], nowMs: number): ReadonlySet<string> =>
  new Set(charges.flatMap((charge) => (isInForce(charge, nowMs) ? charge.models : [])));

export function findPrice(
  charges: readonly PriceRule[],
  model: string,
  nowMs: number,
  terms?: readonly PriceTerms[],
): Price {
  const rule = findRule(charges, model, nowMs);
  return buildPrice(rule, terms, findOpenWindow(rule?.windows, nowMs));
}

/** Changes the price of a rule: `factor` multiplies it, or prices replace it. They are by tokens unless `type` says otherwise. */
export interface PriceTerms extends Partial<WrittenPrice> {
  factor?: number | undefined;
  type?: ChargeEntry['type'] | undefined;
}

/** Hours in which a rule, or a channel's cost, has another price. */
export type PriceWindow = HourWindow & Omit<PriceTerms, 'type'>;

/** A customer's terms for the models that match one of the patterns in `models`. */
export interface CustomerPrice extends PriceTerms {
  models: readonly string[];
  /** In force for calls that begin from this time on, in epoch milliseconds, and before `until`. */
  from?: number | undefined;
  until?: number | undefined;
}

const listTerms = (
  rule: PriceRule,
  terms: readonly PriceTerms[] = [],
  open?: PriceWindow,
): readonly PriceTerms[] => (open ? [{ ...open, type: rule.type }, ...terms] : terms);

/** Returns the last terms with prices, else the rule. They replace all prices of the rule and its window, tiers included. */
export const findWrittenPrice = (
  rule: PriceRule,
  ...terms: [terms?: readonly PriceTerms[], open?: PriceWindow]
): PriceTerms => listTerms(rule, ...terms).findLast((each) => each.factor === undefined) ?? rule;

/**
 * Builds the price of a rule. All factors are multiplied with each other.
 * @param open the rule's window that is open, if any
 */
export function buildPrice(
  rule: PriceRule | undefined,
  terms?: readonly PriceTerms[],
  open?: PriceWindow,
): Price {
  if (!rule) return { type: 'non-billing', rule: null };
  const priced = findWrittenPrice(rule, terms, open);
  const { type = 'token-billing', input = 0, output = 0 } = priced;
  const factors = listTerms(rule, terms, open).map((each) => parseFactor(each.factor ?? 1) ?? factorOne);
  const product = factors.reduce(multiplyFactors, factorOne);
  const factor = product === factorOne ? undefined : product;
  if (type === 'non-billing') return { type, rule: rule.id };
  if (type === 'times-billing')
    return { type, rule: rule.id, perCall: convertToPico(output), factor, window: open?.name };
  const tiers = tiersOf({ ...priced, input, output });
  return { type, rule: rule.id, tiers, factors: priced.service_tiers, factor, window: open?.name };
}

/** The operator's cost of a call, in the currency that the vendor bills. Token prices are per 1,000 tokens. */
export interface BuyingPrice extends Partial<WrittenPrice> {
  /** Added to the price of the tokens. */
  per_call?: number | undefined;
  /** Yuan for one unit of a currency other than yuan. */
  rate?: number | undefined;
  windows?: readonly PriceWindow[] | undefined;
}

/** Applies an open window to the operator's cost: its prices, or its factor, which multiplies `per_call` too. */
export function buildBuyingPrice(
  price: BuyingPrice,
  open: PriceWindow | undefined,
): BuyingPrice & { factor: bigint } {
  const factor = parseFactor(open?.factor ?? 1) ?? factorOne;
  const { per_call, rate } = price;
  return open && open.factor === undefined ? { ...open, per_call, rate, factor } : { ...price, factor };
}

/** By the upstream's name of a model, or `*` for all others. */
type BuyingPrices = Readonly<Record<string, BuyingPrice>>;

export function findBuyingPrice<Price extends BuyingPrice>(
  cost: Readonly<Record<string, Price>> = {},
  upstreamModel: string,
): Price | undefined {
  const name = [upstreamModel, '*'].find((key) => Object.hasOwn(cost, key));
  return name === undefined ? undefined : cost[name];
}

/** @param tier the service tier that served the call */
export function computeBuyingCost(
  cost: BuyingPrices | undefined,
  upstreamModel: string,
  tokens: TokenCounts,
  { tier, startedMs }: { tier: string | undefined; startedMs: number },
): NanoYuan | undefined {
  const listed = findBuyingPrice(cost, upstreamModel);
  if (!listed) return undefined;
  const price = buildBuyingPrice(listed, findOpenWindow(listed.windows, startedMs));
  const { input = 0, output = 0, per_call = 0, rate = 1, service_tiers: factors } = price;
  const byTokens =
    sumProducts(tiersOf({ ...price, input, output }), tokens) * findServiceFactor(factors, tier);
  const sum = byTokens + convertToPico(per_call) * 1_000n * factorOne;
  return divideHalfUp(
    sum * price.factor * convertToPico(rate),
    productsPerNano * factorOne * convertToPico(1),
  );
}

export interface PriceChange<Rule = PriceRule> {
  fromMs: number;
  rule: Rule;
  models: string[];
}

/** Lists announced rules by time, without those that change nothing because another rule wins. */
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
