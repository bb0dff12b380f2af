/**
 * Entries of a price list in US dollars per token. Source: LiteLLM's model_prices_and_context_window.json, whose keys
 * are the names of models.
 */
import { isRecord } from '../../wire/json-record.ts';
import {
  ascending,
  isModelName,
  readRates,
  wholeNumber,
  type ListedPrice,
  type ListedRates,
  type RateWords,
} from './listed-price.ts';

const words = {
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
export function perTokenPrice(model: string, raw: unknown): ListedPrice[] {
  if (!isRecord(raw) || !chatModes.has(raw['mode'] || 'chat') || !isModelName(model)) return [];
  const [first, ...ranges] = rangesOf(raw['tiered_pricing']);
  const rates = readRates(raw, { words, tokens: 0 }) ?? first?.rates;
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
      Object.entries(words).map(([name, word]) => [name, word + suffix]),
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
      const rates = readRates(entry, { words, tokens: 0 });
      return typeof from === 'number' && Number.isSafeInteger(from) && rates ? [{ above: from, rates }] : [];
    }),
  );
}
