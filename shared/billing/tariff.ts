/**
 * The tariff of a call: prices and limits of each model that may answer it. The relay builds it once, when it accepts the call, and
 * nothing later looks a price up. So an edit of a rule or an alias never changes what a running call is charged.
 */
import type { ServiceTiers } from '../wire/service-tier.ts';
import { findOpenWindow } from './schedule.ts';
import {
  formatFactor,
  formatPrice,
  formatTier,
  findServiceFactor,
  findWrittenPrice,
  listServicePrices,
  parsePrice,
  parseTier,
  buildPrice,
  findRule,
  parseFactor,
  type Price,
  type PriceRule,
  type PriceTerms,
  type Tier,
} from './price.ts';
import { formatYuan, parseYuan, type NanoYuan } from './money.ts';

/** Prices by the public base names of models, the call's own first. */
export interface AgreedPrices {
  readonly prices: ReadonlyMap<string, Price>;
  /** The price of the web search, if the call makes one. Exact in nano-yuan, so a charge is rounded once. */
  readonly search?: NanoYuan | undefined;
}

export interface Tariff extends AgreedPrices {
  readonly limits: ReadonlyMap<string, ModelLimits>;
}

/** Limits on the size and the form of calls, from the model's rule. */
export interface ModelLimits {
  maxOutputTokens?: number | undefined;
  /** For clients that set no limit. */
  defaultOutputTokens: number;
  imageTokens?: number | undefined;
  /** Multiplies the estimate of the input from above. */
  inputFactor: number;
  /** The rule has no price for one-hour cache writes, which cost the operator twice the input price. */
  unpricedHour: boolean;
}

interface TariffInput {
  /** The models that may answer, the call's own first. */
  models: readonly string[];
  /** The rules that name a model, by id. */
  rulesOf: (model: string) => readonly PriceRule[];
  /** The terms that change the rule's price for this call. */
  termsOf?: ((model: string) => readonly PriceTerms[]) | undefined;
  /** For models whose rule names no default. */
  defaultOutputTokens: number;
  search?: NanoYuan | undefined;
  nowMs: number;
}

export function buildTariff(input: TariffInput): Tariff {
  const { models, rulesOf, termsOf, defaultOutputTokens, search, nowMs } = input;
  const priced = models.map((model) => {
    const rule = findRule(rulesOf(model), model, nowMs);
    const terms = [termsOf?.(model), findOpenWindow(rule?.windows, nowMs)] as const;
    const written = rule && findWrittenPrice(rule, ...terms);
    const limits = limitsOf(rule, written, defaultOutputTokens);
    return { model, price: buildPrice(rule, ...terms), limits };
  });
  return {
    prices: new Map(priced.map(({ model, price }) => [model, price])),
    limits: new Map(priced.map(({ model, limits }) => [model, limits])),
    search,
  };
}

/** @param written the rule or the terms that set the call's prices */
const limitsOf = (
  rule: PriceRule | undefined,
  written: PriceTerms | undefined,
  defaultOutputTokens: number,
): ModelLimits => ({
  maxOutputTokens: rule?.max_output_tokens,
  defaultOutputTokens: rule?.default_output_tokens ?? defaultOutputTokens,
  imageTokens: rule?.image_tokens,
  inputFactor: rule?.input_factor ?? 1,
  unpricedHour:
    written !== undefined &&
    (written.type ?? 'token-billing') === 'token-billing' &&
    written.cache_write_1h === undefined,
});

export class NotInTariff extends Error {
  override readonly name = 'NotInTariff';
}

export const findAgreedPrice = ({ prices }: AgreedPrices, model: string): Price =>
  requireModel(prices, model);

export const findModelLimits = ({ limits }: Tariff, model: string): ModelLimits =>
  requireModel(limits, model);

export function findServiceTiers(tariff: AgreedPrices, model: string): ServiceTiers {
  const price = findAgreedPrice(tariff, model);
  return (price.type === 'token-billing' && price.factors) || {};
}

function requireModel<Value>(values: ReadonlyMap<string, Value>, model: string): Value {
  const found = values.get(model);
  if (found === undefined) throw new NotInTariff(`the tariff of the call does not cover ${model}`);
  return found;
}

// Open reservation and ledger row keep the prices as text, separated by spaces, with the search at the end:
//
//     [MODEL|]PRICE[;TIER]...[;NAME:xFACTOR]... [+SEARCH]
//
// PRICE and TIER are formatted as in a ledger row's `price`. A single model has no name, so most tariffs read as their price.

/** @see parseTariff */
export function formatTariff({ prices, search }: AgreedPrices): string {
  const texts = [...prices].map(
    ([model, price]) => (prices.size > 1 ? `${model}|` : '') + formatFullPrice(price),
  );
  return [...texts, ...(search === undefined ? [] : [`+${formatYuan(search)}`])].join(' ');
}

function formatFullPrice(price: Price): string {
  if (price.type !== 'token-billing') return formatPrice(price);
  const [, ...tiers] = price.tiers;
  const factors = Object.keys(price.factors ?? {}).map(
    (name) => `${name}:x${formatFactor(findServiceFactor(price.factors, name))}`,
  );
  return [formatPrice({ ...price, serviceFactor: undefined }), ...tiers.map(formatTier), ...factors].join(
    ';',
  );
}

/** @param ownModel the model of a text that names none */
export function parseTariff(text: string, ownModel: string): AgreedPrices | undefined {
  const texts = text.split(' ');
  const search = texts.at(-1)?.startsWith('+') ? parseYuan(texts.pop()?.slice(1) ?? '') : undefined;
  const prices = new Map<string, Price>();
  for (const each of texts) {
    const [written = '', name] = each.split('|').toReversed();
    const price = parseFullPrice(written);
    if (!price) return undefined;
    prices.set(name ?? ownModel, price);
  }
  return { prices, search };
}

const factorPattern = /^([a-z][a-z0-9_-]*):x(\d[\d.]*)$/;

function parseFullPrice(text: string): Price | undefined {
  const [first = '', ...more] = text.split(';');
  const price = parsePrice(first);
  if (price?.type !== 'token-billing') return more.length === 0 ? price : undefined;
  const tiers: Tier[] = [];
  const factors: Record<string, number> = {};
  for (const one of more) {
    const [, name, factor = ''] = factorPattern.exec(one) ?? [];
    const tier = name === undefined ? parseTier(one) : undefined;
    if (tier) tiers.push(tier);
    else if (name !== undefined && parseFactor(factor) !== undefined) factors[name] = Number(factor);
    else return undefined;
  }
  return {
    ...price,
    tiers: [price.tiers[0], ...tiers],
    ...(Object.keys(factors).length > 0 && { factors }),
  };
}

/** Longer texts would make every write to the account dearer. */
const rowLengthMax = 1_024;
/** Replaces a text that is too long. The audit can't check its row. */
export const omittedTariff = '~';

export function formatTariffForRow(tariff: AgreedPrices): string {
  const text = formatTariff(tariff);
  return text.length > rowLengthMax ? omittedTariff : text;
}

/** A row of this model may have one price for each tier in each service tier. */
export function listPriceTexts({ prices }: AgreedPrices, model: string): string[] {
  const price = prices.get(model);
  if (price?.type !== 'token-billing') return price ? [formatPrice(price)] : [];
  return price.tiers.flatMap((tier) =>
    listServicePrices({ ...price, tiers: [tier] }).map((each) => formatPrice(each)),
  );
}

/** A tariff as JSON, for a background run. */
export interface StoredTariff {
  prices: string;
  limits: Record<string, ModelLimits>;
}

export const serializeTariff = (tariff: Tariff): StoredTariff => ({
  prices: formatTariff(tariff),
  limits: Object.fromEntries(tariff.limits),
});

/** Returns undefined if a later version wrote another format. */
export function deserializeTariff({ prices, limits }: StoredTariff): Tariff | undefined {
  const agreed = parseTariff(prices, Object.keys(limits)[0] ?? '');
  return agreed && { ...agreed, limits: new Map(Object.entries(limits)) };
}
