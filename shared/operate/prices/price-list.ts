/** Parses a price list in US dollars per token: LiteLLM's JSON, or CSV rows with the same column names. */
import * as z from 'zod/mini';
import { parseDecimal } from '../../billing/amount.ts';
import { modelName } from '../../config/rows/attribute-schemas.ts';
import { isRecord, parseJson } from '../../wire/json-record.ts';
import { usageFailure } from '../operator-failure.ts';

/** JSON text, or CSV rows including the header. */
export type PriceSource = string | string[][];

/** US dollars per token, as whole numbers of 10^-`dollarDecimals` dollars. */
export interface ListedPrice {
  model: string;
  input: bigint;
  output: bigint;
}

export const dollarDecimals = 18;

export interface PriceList {
  prices: ListedPrice[];
  /** Number of entries without a chat price: other kinds of models, other units, invalid names. */
  skipped: number;
}

const Cost = z.nullish(z.union([z.number(), z.string()]));
const Entry = z.object({
  mode: z.nullish(z.string()),
  input_cost_per_token: Cost,
  output_cost_per_token: Cost,
});
const chatModes = new Set(['chat', 'completion', 'responses']);

/** Throws a Failure if the list has no price of a chat model. */
export function readPriceList(source: PriceSource): PriceList {
  const entries = typeof source === 'string' ? jsonEntries(source) : csvEntries(source);
  const prices = entries.flatMap(([model, entry]) => priceOf(model, entry));
  if (prices.length === 0) throw usageFailure('this file has no price of a chat model');
  return { prices, skipped: entries.length - prices.length };
}

function jsonEntries(text: string): [string, unknown][] {
  const prices = parseJson(text);
  if (!isRecord(prices)) throw usageFailure('this file is not readable as JSON');
  return Object.entries(prices);
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

function priceOf(model: string, raw: unknown): ListedPrice[] {
  const { data: entry } = z.safeParse(Entry, raw);
  if (!entry || !chatModes.has(entry.mode || 'chat') || !z.safeParse(modelName, model).success) return [];
  const costs = [entry.input_cost_per_token, entry.output_cost_per_token];
  if (costs.every((cost) => cost === null || cost === undefined)) return [];
  // If only one cost is written, the other is 0.
  const [input = -1n, output = -1n] = costs.map((cost) => parseDecimal(cost ?? 0, dollarDecimals));
  return input < 0n || output < 0n ? [] : [{ model, input, output }];
}
