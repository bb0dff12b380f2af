/**
 * Entries of a price list in US dollars per million tokens. Source: models.dev's api.json: providers, each with its
 * models, so a name here is `provider/model`.
 */
import { isRecord } from '../../wire/json-record.ts';
import {
  ascending,
  isModelName,
  readRates,
  wholeNumber,
  type ListedPrice,
  type ListedRates,
} from './listed-price.ts';

const words = { input: 'input', output: 'output', cached_input: 'cache_read', cache_write: 'cache_write' };
const million = 6;
const longContext = 200_000;

export const isPerMillion = (list: Record<string, unknown>): boolean =>
  Object.values(list).some((provider) => isRecord(provider) && isRecord(provider['models']));

export const perMillionEntries = (list: Record<string, unknown>): [string, unknown][] =>
  Object.entries(list).flatMap(([provider, entry]) => {
    const models = isRecord(entry) ? entry['models'] : undefined;
    if (!isRecord(models)) return [];
    return Object.entries(models).map(([id, model]): [string, unknown] => [`${provider}/${id}`, model]);
  });

/** Empty: the entry has no price of a model that writes text. */
export function perMillionPrice(model: string, raw: unknown): ListedPrice[] {
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
