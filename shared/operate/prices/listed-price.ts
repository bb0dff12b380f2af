/** A model's price in a public price list, whatever the list's form. */
import { parseDecimal } from '../../billing/amount.ts';
import { modelName } from '../../config/rows/attribute-schemas.ts';
import * as z from 'zod/mini';

/** US dollars per token, as whole numbers of 10^-`dollarDecimals` dollars. Of the cache absent: as `input`. */
export interface ListedRates {
  input: bigint;
  output: bigint;
  cached_input?: bigint | undefined;
  cache_write?: bigint | undefined;
  cache_write_1h?: bigint | undefined;
}
export type RateName = keyof ListedRates;
export const rateNames = ['input', 'output', 'cached_input', 'cache_write', 'cache_write_1h'] as const;

export interface ListedPrice extends ListedRates {
  model: string;
  /** Ascending. `above`: tokens of input. */
  tiers: (ListedRates & { above: number })[];
  maxOutputTokens?: number | undefined;
}

export const dollarDecimals = 18;

/** The name under which an entry's list writes a rate; undefined: it has none. */
export type RateWords = Partial<Record<RateName, string>>;

/**
 * Reads the rates of one record. `tokens`: of how many the prices are, as a power of ten. Where one of input and output
 * is absent it is that of `base`, else 0. Undefined: there is neither, or a price is no price.
 */
export function readRates(
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
export function wholeNumber(value: unknown): number | undefined {
  const number = isScalar(value) ? Number(value) : 0;
  return Number.isSafeInteger(number) && number > 0 ? number : undefined;
}

export const ascending = <Tier extends { above: number }>(tiers: Tier[]): Tier[] =>
  tiers.toSorted((a, b) => a.above - b.above);
