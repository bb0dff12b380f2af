/** Token prices as rows write them, in `charges` and in a channel's `cost`. */
import * as z from 'zod/mini';
import { amount, integerBetween } from './attribute-schemas.ts';

/** Prices of input by what the upstream's cache did with it. Absent: that of `input`. */
export const cachePrices = {
  cached_input: z.optional(amount),
  cache_write: z.optional(amount),
  cache_write_1h: z.optional(amount),
};

const wantedAbove = 'a whole number of input tokens, 1 or more';
const wantedTiers = 'a list of {above, input, output, cached_input, cache_write, cache_write_1h}';

const Tier = z.strictObject(
  {
    above: integerBetween(1, Number.MAX_SAFE_INTEGER, wantedAbove),
    input: amount,
    output: amount,
    ...cachePrices,
  },
  'a map {above, input, output, cached_input, cache_write, cache_write_1h}',
);

const isAscending = (tiers: readonly { above: number }[]): boolean =>
  tiers.every(({ above }, at) => above > (tiers[at - 1]?.above ?? 0));

/** Prices of calls with more than `above` tokens of input. */
export const tiers = z.optional(
  z
    .array(Tier, wantedTiers)
    .check(z.refine(isAscending, 'tiers in the order of above, each with an above of its own')),
);
