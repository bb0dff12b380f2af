/** Reads a price list in US dollars per token: LiteLLM's JSON, or rows of a CSV with the same names of columns. */
import * as z from 'zod/mini';
import { parseDecimal } from '../../billing/amount.ts';
import { modelName } from '../../config/rows/attribute-schemas.ts';
import { usageFailure } from '../operator-failure.ts';

/** The text of a JSON, or the rows of a CSV with their head. */
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
  /** Entries without the price of a chat: other kinds of models, other units, names that no row may have. */
  skipped: number;
}

const Cost = z.nullish(z.union([z.number(), z.string()]));
const Entry = z.object({
  mode: z.nullish(z.string()),
  input_cost_per_token: Cost,
  output_cost_per_token: Cost,
});
type Entry = z.infer<typeof Entry>;
const chatModes = new Set(['chat', 'completion', 'responses']);

/** Throws a Failure when there is no price in it. */
export function readPriceList(source: PriceSource): PriceList {
  const entries = typeof source === 'string' ? jsonEntries(source) : csvEntries(source);
  const prices = entries.flatMap(([model, entry]) => priceOf(model, entry) ?? []);
  if (prices.length === 0) throw usageFailure('this file has no price of a chat model');
  return { prices, skipped: entries.length - prices.length };
}

function jsonEntries(text: string): [string, unknown][] {
  try {
    return Object.entries(JSON.parse(text) as Record<string, unknown>);
  } catch {
    throw usageFailure('this file is not readable as JSON');
  }
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

function priceOf(model: string, raw: unknown): ListedPrice | undefined {
  const entry = z.safeParse(Entry, raw);
  if (!entry.success || !z.safeParse(modelName, model).success) return undefined;
  const { mode } = entry.data;
  if (mode && !chatModes.has(mode)) return undefined;
  const [input, output] = costsOf(entry.data);
  return input === undefined || output === undefined ? undefined : { model, input, output };
}

/** If only one cost is written, the other is 0; without both there is no price. */
function costsOf(entry: Entry): (bigint | undefined)[] {
  const written = [entry.input_cost_per_token, entry.output_cost_per_token];
  if (written.every((cost) => cost === null || cost === undefined)) return [];
  return written.map((cost) => {
    const dollars = parseDecimal(cost ?? 0, dollarDecimals);
    return dollars === undefined || dollars < 0n ? undefined : dollars;
  });
}
