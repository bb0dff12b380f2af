/** Reads a price list in US dollars: public lists in JSON, or CSV rows with the column names of the per-token list. */
import { isRecord, parseJson } from '../../wire/json-record.ts';
import { usageFailure } from '../operator-failure.ts';
import type { ListedPrice } from './listed-price.ts';
import { isPerMillion, perMillionEntries, perMillionPrice } from './per-million-list.ts';
import { perTokenPrice } from './per-token-list.ts';

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
