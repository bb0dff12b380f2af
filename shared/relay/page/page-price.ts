/** Formats prices and plans as text. */
import type { WrittenRates } from '../../billing/price.ts';
import { ruleOf } from '../../billing/price-rule.ts';
import type { PlanEntry } from '../../wire/public/catalog.ts';
import type { PageFacts } from './page-facts.ts';

/** The price of a model, from the rule that prices it now. */
export function priceWordsOf(
  model: string,
  { charges, nowMs }: Pick<PageFacts, 'charges' | 'nowMs'>,
): string {
  const charge = ruleOf(charges, model, nowMs);
  if (charge === undefined || charge.type === 'non-billing') return 'free';
  if (charge.type === 'times-billing')
    return charge.output === 0 ? 'free' : `${yuan(charge.output)} per call`;
  const { tiers = [] } = charge;
  if ([charge, ...tiers].every((rates) => isFree(rates))) return 'free';
  const higher = tiers.map(
    (tier) => `; above ${tier.above.toLocaleString('en-US')} input tokens ${ratesWords(tier)}`,
  );
  return `${ratesWords(charge)}, per 1,000 tokens${higher.join('')}`;
}

const isFree = ({ input, output, cached_input, cache_write, cache_write_1h }: WrittenRates): boolean =>
  [input, output, cached_input, cache_write, cache_write_1h].every((price) => !price);

/** Prices of the cache are shown where they differ from that of input. */
function ratesWords({ input, output, cached_input, cache_write, cache_write_1h }: WrittenRates): string {
  const cache = Object.entries({
    cached: cached_input,
    'written to cache': cache_write,
    'for an hour': cache_write_1h,
  }).flatMap(([name, price]) => (price === undefined || price === input ? [] : [`${yuan(price)} ${name}`]));
  const parts = cache.length > 0 ? ` (${cache.join(', ')})` : '';
  return `${yuan(input)} in${parts}, ${yuan(output)} out`;
}

/** What the page's list of models says, a line each: names with prices. Models that are not offered are left out. */
export const modelLines = (facts: PageFacts): [name: string, words: string][] => [
  ...facts.models.map((model): [string, string] => [model, priceWordsOf(model, facts)]),
  ...(facts.aliases ?? []).map(({ name, models }): [string, string] => {
    const offered = models.filter((model) => facts.models.includes(model));
    return [name, `at the price of the model that answers: ${offered.join(', else ')}`];
  }),
];

/** The entries of a plan, one line each. */
export const planLines = (plan: PlanEntry): string[] =>
  plan.items.map((item) => {
    const calls =
      item.value === -1 ? 'unlimited calls' : `${item.value.toLocaleString('en-US')} calls a month`;
    return `${item.name || item.id}: ${calls} (${item.models.join(', ')})`;
  });

/** Never in scientific notation: 0.0000015, not 1.5e-6. */
export const yuan = (amount: number): string =>
  `¥${amount.toLocaleString('en-US', { maximumFractionDigits: 12, useGrouping: false })}`;
