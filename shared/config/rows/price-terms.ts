/** Schemas of prices that several tables share: rates, tiers, factors, and terms of windows and customers. */
import * as z from 'zod/mini';
import { priceKinds, rowFactorDecimals, type PriceTerms } from '../../billing/price.ts';
import { parseDecimal } from '../../billing/money.ts';
import { mapInputParts, partPrices } from '../../wire/chat-response.ts';
import { standardTiers } from '../../wire/service-tier.ts';
import { amount, integerBetween, listOf, text, time } from './read-row.ts';

/** Parts of the input without a price cost what `input` costs. */
export const rowPartPrices = mapInputParts('price', () => z.optional(amount));

const wantedAbove = 'a whole number of input tokens, 1 or more';
const tierForm = `{above, input, output, ${partPrices.join(', ')}}`;
const wantedTiers = `a list of ${tierForm}`;

const Tier = z.strictObject(
  {
    above: integerBetween(1, Number.MAX_SAFE_INTEGER, wantedAbove),
    input: amount,
    output: amount,
    ...rowPartPrices,
  },
  `a map ${tierForm}`,
);

const isAscending = (tiers: readonly { above: number }[]): boolean =>
  tiers.every(({ above }, at) => above > (tiers[at - 1]?.above ?? 0));

export const tiers = z.optional(
  z
    .array(Tier, wantedTiers)
    .check(z.refine(isAscending, 'tiers in ascending order of above, each different')),
);

const wantedTier =
  'a service tier other than the standard one: up to 32 characters a-z 0-9 _ -, starting with a letter';
const isTier = (name: string): boolean => /^[a-z][a-z0-9_-]{0,31}$/.test(name) && !standardTiers.has(name);
const wantedFactor = 'a factor of more than 0 and at most 100, with at most 6 decimals';
const isFactor = (value: number): boolean =>
  value > 0 && value <= 100 && parseDecimal(value, rowFactorDecimals, true) !== undefined;
const factor = amount.check(z.refine(isFactor, wantedFactor));

const wantedTierFactors = 'a map of service tiers to factors, such as {"flex": 0.5, "priority": 2}';

/** Not a record of zod's, which every answering function would load at its start: 2.8 KB. */
export const serviceTiers = z.optional(
  z.catchall(z.object({}, wantedTierFactors), factor).check(
    z.check(({ value, issues }) => {
      for (const name of Object.keys(value).filter((each) => !isTier(each)))
        issues.push({
          code: 'invalid_key',
          origin: 'record',
          path: [name],
          input: name,
          issues: [{ code: 'custom', path: [], message: wantedTier }],
        });
    }),
  ),
);

export const chargeType = z.enum(
  ['non-billing', 'times-billing', 'token-billing'],
  '"non-billing", "times-billing" or "token-billing"',
);

export const termsShape = {
  factor: z.optional(factor),
  input: z.optional(amount),
  output: z.optional(amount),
  ...rowPartPrices,
  tiers,
  service_tiers: serviceTiers,
};

export const wantedTerms =
  'either a factor or prices: input and output, with the type times-billing output alone, with non-billing none';

/** Requires input and output together: one alone would make the other free. */
export function areTerms(terms: PriceTerms, type: PriceTerms['type'] = 'token-billing'): boolean {
  const names = termNames.filter((name) => terms[name] !== undefined);
  if (names.includes('factor')) return names.length === 1;
  if (type === 'non-billing') return names.length === 0;
  if (type === 'times-billing') return names.join() === 'output';
  return names.includes('input') && names.includes('output');
}

const termNames: readonly Exclude<keyof PriceTerms, 'type'>[] = [
  'factor',
  ...priceKinds.map(([name]) => name),
  'tiers',
  'service_tiers',
];

const termsMax = 100;
const wantedPatterns = 'a list (or a string set) of 1 to 100 model names, in which * stands for any text';
const wantedPrices = `a list of 1 to ${termsMax} maps {models, factor} or {models, input, output, ...}`;

/** A customer's prices. The first entry that matches a model and is in force applies. */
export const customerPrices = listOf(
  z
    .strictObject(
      {
        models: listOf(text, 100, wantedPatterns),
        from: z.optional(time),
        until: z.optional(time),
        type: z.optional(chargeType),
        ...termsShape,
      },
      'a map {models, factor} or {models, input, output, ...}',
    )
    .check(
      z.refine(({ from = -Infinity, until = Infinity }) => from < until, {
        error: 'a time later than from',
        path: ['until'],
      }),
      z.refine(
        (terms) => areTerms(terms, terms.type) && (terms.factor === undefined || terms.type === undefined),
        wantedTerms,
      ),
    ),
  termsMax,
  wantedPrices,
);
