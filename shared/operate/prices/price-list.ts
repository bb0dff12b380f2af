/** Reads a price list in US dollars: public lists in JSON, or CSV rows with the column names of the per-token list. */
import * as z from 'zod/mini';
import { isRecord, parseJson } from '../../wire/json.ts';
import { usageFailure } from '../plan.ts';
import { parseDecimal } from '../../billing/amount.ts';
import { modelName } from '../../config/rows/read-row.ts';

/** JSON text, or CSV rows including the header. */
export type PriceSource = string | string[][];

export interface PriceList {
  prices: ListedPrice[];
  /** Number of entries without a chat price: other kinds of models, other units, invalid names. */
  skipped: number;
}

/** Throws a Failure if the list has no price of a chat model. */
export function readPriceList(source: PriceSource): PriceList {
  const list = typeof source === 'string' ? jsonList(source) : Object.fromEntries(csvEntries(source));
  const perMillion = isPerMillion(list);
  const entries = perMillion ? perMillionEntries(list) : Object.entries(list);
  const prices = entries.flatMap(([model, entry]) =>
    perMillion ? perMillionPrice(model, entry) : perTokenPrice(model, entry),
  );
  if (prices.length === 0) throw usageFailure('this file has no price of a chat model');
  return { prices, skipped: entries.length - prices.length };
}

function jsonList(text: string): Record<string, unknown> {
  const list = parseJson(text);
  if (!isRecord(list)) throw usageFailure('this file is not readable as JSON');
  return list;
}

function csvEntries([head = [], ...rows]: string[][]): [string, unknown][] {
  const names = head.map((name) => name.toLowerCase());
  for (const wanted of ['model', 'input_cost_per_token', 'output_cost_per_token'])
    if (!names.includes(wanted)) throw usageFailure(`the first line of a CSV must name the column ${wanted}`);
  return rows.map((row) => {
    const entry = Object.fromEntries(names.map((name, at) => [name, row[at] || undefined]));
    return [entry['model'] ?? '', entry];
  });
}

// A model's price in a public price list, whatever the list's form.

/** US dollars per token, as whole numbers of 10^-`dollarDecimals` dollars. Of the cache absent: as `input`. */
export interface ListedRates {
  input: bigint;
  output: bigint;
  cached_input?: bigint | undefined;
  cache_write?: bigint | undefined;
  cache_write_1h?: bigint | undefined;
}
type RateName = keyof ListedRates;
export const rateNames = ['input', 'output', 'cached_input', 'cache_write', 'cache_write_1h'] as const;

export interface ListedPrice extends ListedRates {
  model: string;
  /** Ascending. `above`: tokens of input. */
  tiers: (ListedRates & { above: number })[];
  maxOutputTokens?: number | undefined;
}

export const dollarDecimals = 18;

/** The name under which an entry's list writes a rate; undefined: it has none. */
type RateWords = Partial<Record<RateName, string>>;

/**
 * Reads the rates of one record. `tokens`: of how many the prices are, as a power of ten. Where one of input and output
 * is absent it is that of `base`, else 0. Undefined: there is neither, or a price is no price.
 */
function readRates(
  record: Record<string, unknown>,
  { words, tokens, base }: { words: RateWords; tokens: number; base?: ListedRates },
): ListedRates | undefined {
  const rates: Partial<ListedRates> = {};
  for (const name of rateNames) {
    const written = record[words[name] ?? ''];
    if (written === undefined || written === null || written === '') continue;
    const rate = isScalar(written) ? parseDecimal(written, dollarDecimals - tokens) : undefined;
    if (rate === undefined || rate < 0n) return undefined;
    rates[name] = rate;
  }
  const { input, output } = rates;
  if (input === undefined && output === undefined) return undefined;
  return { ...rates, input: input ?? base?.input ?? 0n, output: output ?? base?.output ?? 0n };
}

const isScalar = (value: unknown): value is number | string =>
  typeof value === 'number' || typeof value === 'string';

export const isModelName = (name: string): boolean => z.safeParse(modelName, name).success;

/** A whole number above zero, else undefined: lists have texts and placeholders there, too. */
function wholeNumber(value: unknown): number | undefined {
  const number = isScalar(value) ? Number(value) : 0;
  return Number.isSafeInteger(number) && number > 0 ? number : undefined;
}

const ascending = <Tier extends { above: number }>(tiers: Tier[]): Tier[] =>
  tiers.toSorted((a, b) => a.above - b.above);

// Entries of a price list in US dollars per million tokens. Source: models.dev's api.json: providers, each with its
// models, so a name here is `provider/model`.

const words = { input: 'input', output: 'output', cached_input: 'cache_read', cache_write: 'cache_write' };
const million = 6;
const longContext = 200_000;

const isPerMillion = (list: Record<string, unknown>): boolean =>
  Object.values(list).some((provider) => isRecord(provider) && isRecord(provider['models']));

const perMillionEntries = (list: Record<string, unknown>): [string, unknown][] =>
  Object.entries(list).flatMap(([provider, entry]) => {
    const models = isRecord(entry) ? entry['models'] : undefined;
    if (!isRecord(models)) return [];
    return Object.entries(models).map(([id, model]): [string, unknown] => [`${provider}/${id}`, model]);
  });

/** Empty: the entry has no price of a model that writes text. */
function perMillionPrice(model: string, raw: unknown): ListedPrice[] {
  if (!isRecord(raw) || !isRecord(raw['cost']) || !isModelName(model) || !writesText(raw)) return [];
  const { cost, limit } = raw;
  const rates = readRates(cost, { words, tokens: million });
  if (!rates) return [];
  const maxOutputTokens = isRecord(limit) ? wholeNumber(limit['output']) : undefined;
  return [{ model, ...rates, tiers: tiersOf(cost, rates), maxOutputTokens }];
}

function writesText({ modalities }: Record<string, unknown>): boolean {
  const written = isRecord(modalities) ? modalities['output'] : undefined;
  return !Array.isArray(written) || written.includes('text');
}

/** `tiers` says the same as the older `context_over_200k`, with the true step. */
function tiersOf(cost: Record<string, unknown>, base: ListedRates): ListedPrice['tiers'] {
  const { tiers, context_over_200k: long } = cost;
  const written: [unknown, unknown][] = Array.isArray(tiers)
    ? tiers.filter(isRecord).map((entry) => [stepOf(entry['tier']), entry])
    : [[longContext, long]];
  return ascending(
    written.flatMap(([size, entry]) => {
      const above = wholeNumber(size);
      const rates = isRecord(entry) ? readRates(entry, { words, tokens: million, base }) : undefined;
      return above !== undefined && rates ? [{ above, ...rates }] : [];
    }),
  );
}

const stepOf = (tier: unknown): unknown =>
  isRecord(tier) && tier['type'] === 'context' ? tier['size'] : undefined;

// Entries of a price list in US dollars per token. Source: LiteLLM's model_prices_and_context_window.json, whose keys
// are the names of models.

const perTokenListWords = {
  input: 'input_cost_per_token',
  output: 'output_cost_per_token',
  cached_input: 'cache_read_input_token_cost',
  cache_write: 'cache_creation_input_token_cost',
  cache_write_1h: 'cache_creation_input_token_cost_above_1hr',
} as const;

const chatModes = new Set<unknown>(['chat', 'completion', 'responses']);
/** Such as `input_cost_per_token_above_200k_tokens`; names with more behind it are prices of other kinds of calls. */
const stepPattern = /^(?:input|output)_cost_per_token(_above_(\d+)(k?)_tokens)$/;

/** Empty: the entry has no price of a chat model. */
function perTokenPrice(model: string, raw: unknown): ListedPrice[] {
  if (!isRecord(raw) || !chatModes.has(raw['mode'] || 'chat') || !isModelName(model)) return [];
  const [first, ...ranges] = rangesOf(raw['tiered_pricing']);
  const rates = readRates(raw, { words: perTokenListWords, tokens: 0 }) ?? first?.rates;
  if (!rates) return [];
  const tiers = [...stepsOf(raw, rates), ...ranges].map(({ above, rates: tier }) =>
    Object.assign({ above }, tier),
  );
  const maxOutputTokens = wholeNumber(raw['max_output_tokens']);
  return [{ model, ...rates, tiers: ascending(tiers), maxOutputTokens }];
}

interface Step {
  above: number;
  rates: ListedRates;
}

function stepsOf(raw: Record<string, unknown>, base: ListedRates): Step[] {
  const found = Object.keys(raw).flatMap((name) => {
    const [, suffix, count, thousands] = stepPattern.exec(name) ?? [];
    const above = Number(count) * (thousands === 'k' ? 1_000 : 1);
    return suffix === undefined || raw[name] === null || above < 1 ? [] : [{ suffix, above }];
  });
  const bySize = new Map(found.map((step) => [step.above, step]));
  return [...bySize.values()].flatMap(({ suffix, above }) => {
    const named: RateWords = Object.fromEntries(
      Object.entries(perTokenListWords).map(([name, word]) => [name, word + suffix]),
    );
    const rates = readRates(raw, { words: named, tokens: 0, base });
    return rates ? [{ above, rates }] : [];
  });
}

/** The other way to write tiers: a list of {range: [from, to], ...prices}. The first begins at 0. */
function rangesOf(tiered: unknown): Step[] {
  if (!Array.isArray(tiered)) return [];
  return ascending(
    tiered.filter(isRecord).flatMap((entry) => {
      const from: unknown = Array.isArray(entry['range']) ? entry['range'][0] : undefined;
      const rates = readRates(entry, { words: perTokenListWords, tokens: 0 });
      return typeof from === 'number' && Number.isSafeInteger(from) && rates ? [{ above: from, rates }] : [];
    }),
  );
}
