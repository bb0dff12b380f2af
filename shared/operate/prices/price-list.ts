import * as z from 'zod/mini';
import { parseDecimal } from '../../billing/amount.ts';
import { modelName } from '../../config/rows/attribute-schemas.ts';
import { parseCsv } from './csv.ts';
import { usageFailure } from '../operator-failure.ts';

/** US dollars per token, as whole numbers of 10^-`dollarDecimals` dollars. */
export interface ListedPrice {
  model: string;
  input: bigint;
  output: bigint;
}

export const dollarDecimals = 18;

export interface PriceList {
  prices: ListedPrice[];
  /** Entries that say nothing of the price of a chat: other kinds of models, other units, odd names. */
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

/** Reads a price list, JSON or CSV by its first character. Throws a Failure when it is neither. */
export function readPriceList(text: string): PriceList {
  const entries = text.trimStart().startsWith('{') ? jsonEntries(text) : csvEntries(text);
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

function csvEntries(text: string): [string, unknown][] {
  const [head = [], ...rows] = parseCsv(text);
  const names = head.map((name) => name.toLowerCase());
  for (const wanted of ['model', 'input_cost_per_token', 'output_cost_per_token'])
    if (!names.includes(wanted)) throw usageFailure(`the first line of a CSV must name the column ${wanted}`);
  return rows.map((row) => {
    const cells = Object.fromEntries(names.map((name, at) => [name, row[at] || undefined]));
    return [cells['model'] ?? '', cells];
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

/** One cost alone leaves the other at nothing; none at all is no price. */
function costsOf(entry: Entry): (bigint | undefined)[] {
  const written = [entry.input_cost_per_token, entry.output_cost_per_token];
  if (written.every((cost) => cost === null || cost === undefined)) return [];
  return written.map((cost) => {
    const dollars = parseDecimal(cost ?? 0, dollarDecimals);
    return dollars === undefined || dollars < 0n ? undefined : dollars;
  });
}
