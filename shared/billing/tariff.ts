/**
 * The tariff of a call: what each model that may answer it costs, and may write. The relay builds it once, when it accepts the
 * call. Nothing after that looks a price up, so an edit of a rule or an alias never changes what a call under way is charged.
 */
import type { ServiceTiers } from '../wire/service-tier.ts';
import {
  formatDecimal,
  formatPrice,
  formatTier,
  formatYuan,
  factorDecimals,
  findFactor,
  factorOne,
  parsePrice,
  parseTier,
  parseYuan,
  buildPrice,
  findRule,
  parseFactor,
  type NanoYuan,
  type Price,
  type PriceRule,
  type Tier,
} from './price.ts';

/** Models by their public base names, the call's own first. */
export interface AgreedPrices {
  readonly prices: ReadonlyMap<string, Price>;
  /** The price of one web search, exact in nano-yuan, so a charge is rounded once. Zero: it is free. Absent: the call makes none. */
  readonly search?: NanoYuan | undefined;
}

export interface Tariff extends AgreedPrices {
  readonly limits: ReadonlyMap<string, ModelLimits>;
}

/** Limits on the size and the form of calls, from the model's rule. */
export interface ModelLimits {
  /** The model's own maximum of one answer. Absent: unknown. */
  maxOutputTokens?: number | undefined;
  /** What one answer may have where the client sets no limit. */
  defaultOutputTokens: number;
  imageTokens?: number | undefined;
  /** Multiplies the estimate of the input from above. At least 1. */
  inputFactor: number;
  /** Cache writes for an hour, which cost the operator twice the input, have no price of their own. */
  unpricedHour: boolean;
}

interface TariffInput {
  /** The models that may answer, the call's own first. */
  models: readonly string[];
  /** The rules that name a model, by id. */
  rulesOf: (model: string) => readonly PriceRule[];
  /** For models whose rule names no default. */
  defaultOutputTokens: number;
  /** As in `AgreedPrices`. */
  search?: NanoYuan | undefined;
  nowMs: number;
}

export function buildTariff({ models, rulesOf, defaultOutputTokens, search, nowMs }: TariffInput): Tariff {
  const rules = models.map((model) => [model, findRule(rulesOf(model), model, nowMs)] as const);
  return {
    prices: new Map(rules.map(([model, rule]) => [model, buildPrice(rule)])),
    limits: new Map(rules.map(([model, rule]) => [model, limitsOf(rule, defaultOutputTokens)])),
    search,
  };
}

const limitsOf = (rule: PriceRule | undefined, defaultOutputTokens: number): ModelLimits => ({
  maxOutputTokens: rule?.max_output_tokens,
  defaultOutputTokens: rule?.default_output_tokens ?? defaultOutputTokens,
  imageTokens: rule?.image_tokens,
  inputFactor: rule?.input_factor ?? 1,
  unpricedHour: rule?.type === 'token-billing' && rule.cache_write_1h === undefined,
});

export class NotInTariff extends Error {
  override readonly name = 'NotInTariff';
}

export const findAgreedPrice = ({ prices }: AgreedPrices, model: string): Price => covered(prices, model);

export const findModelLimits = ({ limits }: Tariff, model: string): ModelLimits => covered(limits, model);

export function findServiceTiers(tariff: AgreedPrices, model: string): ServiceTiers {
  const price = findAgreedPrice(tariff, model);
  return (price.type === 'token-billing' && price.factors) || {};
}

function covered<Value>(values: ReadonlyMap<string, Value>, model: string): Value {
  const found = values.get(model);
  if (found === undefined) throw new NotInTariff(`the tariff of the call does not cover ${model}`);
  return found;
}

// The prices of a tariff as text, for the open reservation and the ledger row. Models stand between spaces, and a search last:
//
//     [MODEL|]PRICE[;TIER]...[;NAME:xFACTOR]... [+SEARCH]
//
// PRICE and TIER are those of a ledger row's `price`; the name is absent where the call has one model. So the text of most
// tariffs is that of their price.

/** @see parseTariff */
export function formatTariff({ prices, search }: AgreedPrices): string {
  const named = [...prices].map(([model, price]) => (prices.size > 1 ? `${model}|` : '') + fullPrice(price));
  return [...named, ...(search === undefined ? [] : [`+${formatYuan(search)}`])].join(' ');
}

function fullPrice(price: Price): string {
  if (price.type !== 'token-billing') return formatPrice(price);
  const [, ...tiers] = price.tiers;
  const factors = Object.keys(price.factors ?? {}).map(
    (name) => `${name}:x${formatDecimal(findFactor(price.factors, name), factorDecimals)}`,
  );
  return [formatPrice({ ...price, factor: undefined }), ...tiers.map(formatTier), ...factors].join(';');
}

/** @param ownModel the model of a text that names none. Undefined: the text is not a tariff. */
export function parseTariff(text: string, ownModel: string): AgreedPrices | undefined {
  const parts = text.split(' ');
  const search = parts.at(-1)?.startsWith('+') ? parseYuan(parts.pop()?.slice(1) ?? '') : undefined;
  const prices = new Map<string, Price>();
  for (const part of parts) {
    const [written = '', name] = part.split('|').toReversed();
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

/** Longer texts are not kept with the reservation, because they make every write to the account dearer. */
const keptLengthMax = 1_024;
/** Replaces a tariff that is too long to keep. The audit can't check its row. */
export const omittedTariff = '~';

export function formatTariffForRow(tariff: AgreedPrices): string {
  const text = formatTariff(tariff);
  return text.length > keptLengthMax ? omittedTariff : text;
}

/** Every price text that a row may have if this model answered: one for each tier in each service tier. */
export function listPriceTexts({ prices }: AgreedPrices, model: string): string[] {
  const price = prices.get(model);
  if (price?.type !== 'token-billing') return price ? [formatPrice(price)] : [];
  const named = Object.keys(price.factors ?? {}).map((name) => findFactor(price.factors, name));
  const factors = [undefined, ...named.filter((factor) => factor !== factorOne)];
  return price.tiers.flatMap((tier) =>
    factors.map((factor) => formatPrice({ ...price, tiers: [tier], factor })),
  );
}

/** A tariff as JSON, for the run that continues the call. */
export interface StoredTariff {
  prices: string;
  limits: Record<string, ModelLimits>;
}

export const serializeTariff = (tariff: Tariff): StoredTariff => ({
  prices: formatTariff(tariff),
  limits: Object.fromEntries(tariff.limits),
});

/** Undefined: a later version wrote it in another format. */
export function deserializeTariff({ prices, limits }: StoredTariff): Tariff | undefined {
  const agreed = parseTariff(prices, Object.keys(limits)[0] ?? '');
  return agreed && { ...agreed, limits: new Map(Object.entries(limits)) };
}
