/**
 * Reads a price list in US dollars per token: LiteLLM's model_prices_and_context_window.json, or CSV rows with the column names
 * of that list.
 */
import * as z from 'zod/mini';
import { partPrices, type PartPrice } from '../../wire/chat-response.ts';
import { parseDecimal } from '../../billing/price.ts';
import { modelName } from '../../config/rows/read-row.ts';
import { isRecord, parseJson } from '../../wire/json.ts';
import { usageFailure } from '../plan.ts';

/** JSON text, or CSV rows including the header. */
export type PriceSource = string | string[][];

/** US dollars per token, as whole numbers of 10^-`dollarDecimals` dollars. Of a part absent: as `input`. */
export type ListedRates = { input: bigint; output: bigint } & Partial<Record<PartPrice, bigint | undefined>>;
export const rateNames: readonly (keyof ListedRates)[] = ['input', 'output', ...partPrices];
export const dollarDecimals = 18;

type ListedTier = ListedRates & { above: number };

export type ListedPrice = ListedRates & {
  model: string;
  /** Ascending. `above`: tokens of input. */
  tiers: ListedTier[];
  maxOutputTokens?: number | undefined;
};

export interface PriceList {
  prices: ListedPrice[];
  /** Number of entries without a chat price: other kinds of models, other units, invalid names. */
  skipped: number;
}

/** Throws a Failure if the list has no price of a chat model. */
export function readPriceList(source: PriceSource): PriceList {
  const list = typeof source === 'string' ? parseJson(source) : Object.fromEntries(parseCsvEntries(source));
  if (!isRecord(list)) throw usageFailure('this file is not valid JSON');
  const entries = Object.entries(list);
  const prices = entries.flatMap(([model, entry]): ListedPrice[] => {
    const price = isRecord(entry) && isModelName(model) ? readListedPrice(entry) : undefined;
    return price ? [{ model, ...price, tiers: price.tiers.toSorted((a, b) => a.above - b.above) }] : [];
  });
  if (prices.length === 0) throw usageFailure('this file has no prices of chat models');
  return { prices, skipped: entries.length - prices.length };
}

export const isModelName = (name: string): boolean => z.safeParse(modelName, name).success;

function parseCsvEntries([head = [], ...rows]: string[][]): [string, unknown][] {
  const names = head.map((name) => name.toLowerCase());
  for (const wanted of ['model', 'input_cost_per_token', 'output_cost_per_token'])
    if (!names.includes(wanted)) throw usageFailure(`the CSV header lacks the column ${wanted}`);
  return rows.map((row) => {
    const entry = Object.fromEntries(names.map((name, at) => [name, row[at] || undefined]));
    return [entry['model'] ?? '', entry];
  });
}

/** The names under which an entry writes rates; absent: it has none. */
type RateWords = Partial<Record<keyof ListedRates, string>>;

/**
 * A missing input or output price is that of `base`, else 0. Returns nothing if both are missing or a price is
 * invalid.
 */
function readRates(record: unknown, words: RateWords, base?: ListedRates): ListedRates | undefined {
  if (!isRecord(record)) return undefined;
  const rates: Partial<ListedRates> = {};
  for (const name of rateNames) {
    const written = record[words[name] ?? ''];
    if (written === undefined || written === null || written === '') continue;
    const rate = isScalar(written) ? parseDecimal(written, dollarDecimals) : undefined;
    if (rate === undefined || rate < 0n) return undefined;
    rates[name] = rate;
  }
  const { input, output } = rates;
  if (input === undefined && output === undefined) return undefined;
  return { ...rates, input: input ?? base?.input ?? 0n, output: output ?? base?.output ?? 0n };
}

const isScalar = (value: unknown): value is number | string =>
  typeof value === 'number' || typeof value === 'string';

/** A whole number above zero, else undefined: lists have texts and placeholders there, too. */
function parseWholeNumber(value: unknown): number | undefined {
  const number = isScalar(value) ? Number(value) : 0;
  return Number.isSafeInteger(number) && number > 0 ? number : undefined;
}

const perToken = {
  input: 'input_cost_per_token',
  output: 'output_cost_per_token',
  cached_input: 'cache_read_input_token_cost',
  cache_write: 'cache_creation_input_token_cost',
  cache_write_1h: 'cache_creation_input_token_cost_above_1hr',
};

const chatModes = new Set<unknown>(['chat', 'completion', 'responses']);
/** Such as `input_cost_per_token_above_200k_tokens`; names with more behind it are prices of other kinds of calls. */
const stepPattern = /^(?:input|output)_cost_per_token(_above_(\d+)(k?)_tokens)$/;

/** Returns nothing for entries without a price of a model that writes text. */
function readListedPrice(raw: Record<string, unknown>): Omit<ListedPrice, 'model'> | undefined {
  if (!chatModes.has(raw['mode'] || 'chat')) return undefined;
  const ranges = rangesOf(raw['tiered_pricing']);
  const rates = readRates(raw, perToken) ?? ranges[0];
  if (!rates) return undefined;
  const suffixes = new Map<number, string>();
  for (const name of Object.keys(raw)) {
    const [, suffix, count, thousands] = stepPattern.exec(name) ?? [];
    const above = Number(count) * (thousands === 'k' ? 1_000 : 1);
    if (suffix !== undefined && raw[name] !== null && above >= 1) suffixes.set(above, suffix);
  }
  const steps = [...suffixes].flatMap(([above, suffix]): ListedTier[] => {
    const words = Object.entries(perToken).map(([name, word]) => [name, word + suffix]);
    const own = readRates(raw, Object.fromEntries(words) as RateWords, rates);
    return own ? [{ above, ...own }] : [];
  });
  return {
    ...(Object.fromEntries(rateNames.map((name) => [name, rates[name]])) as ListedRates),
    tiers: [...steps, ...ranges.slice(1)],
    maxOutputTokens: parseWholeNumber(raw['max_output_tokens']),
  };
}

/** The other way to write tiers: a list of {range: [from, to], ...prices}. The first begins at 0. */
const rangesOf = (tiered: unknown): ListedTier[] =>
  (Array.isArray(tiered) ? tiered : [])
    .flatMap((entry): ListedTier[] => {
      const range: unknown = isRecord(entry) ? entry['range'] : undefined;
      const above: unknown = Array.isArray(range) ? range[0] : undefined;
      const rates = readRates(entry, perToken);
      return typeof above === 'number' && Number.isSafeInteger(above) && rates ? [{ above, ...rates }] : [];
    })
    .toSorted((a, b) => a.above - b.above);
