/** What the calls of a channel cost the operator, by the upstream's name of a model. */
import * as z from 'zod/mini';
import { amount, positiveNumber } from './attribute-schemas.ts';
import { cachePrices, tiers } from './token-prices.ts';

const yuanCode = 'CNY';
const wantedCurrency = 'the code of a currency, such as "USD"';
const wantedRate = 'yuan for one unit of the currency, and a currency other than CNY beside it';

const CostEntry = z
  .strictObject(
    {
      /** Per 1,000 tokens, as all token prices are. */
      input: z.optional(amount),
      output: z.optional(amount),
      ...cachePrices,
      tiers,
      /** Of a call, in addition to its tokens. */
      per_call: z.optional(amount),
      currency: z.optional(z.string(wantedCurrency).check(z.regex(/^[A-Z]{3}$/, wantedCurrency))),
      /** Yuan for one unit of the currency. */
      rate: z.optional(positiveNumber),
    },
    'a map {input, output, cached_input, ..., per_call, currency, rate}',
  )
  .check(
    z.refine(isPriced, 'prices of both input and output, or per_call alone'),
    z.refine(({ currency = yuanCode, rate }) => (currency !== yuanCode) === (rate !== undefined), {
      error: wantedRate,
      path: ['rate'],
    }),
  );

interface Priced {
  input?: unknown;
  output?: unknown;
  per_call?: unknown;
}

/** Prices of the cache and tiers are no price without both. */
function isPriced({ input, output, per_call, ...more }: Priced): boolean {
  if (input !== undefined || output !== undefined) return input !== undefined && output !== undefined;
  const { currency: _currency, rate: _rate, ...others } = more as Record<string, unknown>;
  return per_call !== undefined && Object.values(others).every((value) => value === undefined);
}

const wantedName = "the upstream's name of a model, or *";

export const channelCost = z.optional(
  z.record(
    z.string(wantedName).check(z.regex(/^\S(.*\S)?$/, wantedName)),
    CostEntry,
    "a map of the upstream's model name, or *, to its prices",
  ),
);
