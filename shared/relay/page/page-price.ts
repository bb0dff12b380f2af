/** Formats prices and plans as text. */
import { formatDecimal } from '../../billing/amount.ts';
import { perMillion as millionPrice, priceDecimals, toPico, type WrittenRates } from '../../billing/price.ts';
import { ruleOf, type PriceRule } from '../../billing/price-rule.ts';
import type { PlanEntry } from '../../wire/public/catalog.ts';
import { dateWords } from './page-dates.ts';
import type { PageFacts } from './page-facts.ts';

/** A price as a row of a table. `when`: which calls it is for; empty: all that no other line is for. */
export interface PriceLine {
  when: string;
  /** Of a million tokens. Text instead: the price has no such parts. */
  rates: { input: string; cached: string; output: string; writes: string[] } | string;
}

/** What a model costs now, then what it will cost. */
export function priceLines(
  model: string,
  { charges, changes, nowMs, timeZone }: Pick<PageFacts, 'charges' | 'changes' | 'nowMs' | 'timeZone'>,
): PriceLine[] {
  const announced = changes.filter(({ models }) => models.includes(model));
  return [
    ...linesOf(ruleOf(charges, model, nowMs), ''),
    ...announced.flatMap(({ fromMs, rule }) => linesOf(rule, `from ${dateWords(fromMs, timeZone)}`)),
  ];
}

function linesOf(rule: PriceRule | undefined, when: string): PriceLine[] {
  if (rule === undefined || rule.type === 'non-billing') return [{ when, rates: 'free' }];
  if (rule.type === 'times-billing')
    return [{ when, rates: rule.output === 0 ? 'free' : `${yuan(rule.output)} per call` }];
  const { tiers = [] } = rule;
  if ([rule, ...tiers].every(isFree)) return [{ when, rates: 'free' }];
  return [
    { when, rates: ratesOf(rule) },
    ...tiers.map((tier) => ({
      when: `${when === '' ? '' : `${when}, `}above ${tier.above.toLocaleString('en-US')} input tokens`,
      rates: ratesOf(tier),
    })),
  ];
}

const isFree = ({ input, output, cached_input, cache_write, cache_write_1h }: WrittenRates): boolean =>
  [input, output, cached_input, cache_write, cache_write_1h].every((price) => !price);

/** What is written to the cache is named where its price differs from that of input. */
function ratesOf({ input, output, cached_input = input, cache_write, cache_write_1h }: WrittenRates) {
  const written = Object.entries({ 'cache write': cache_write, 'for an hour': cache_write_1h });
  return {
    input: perMillion(input),
    cached: perMillion(cached_input),
    output: perMillion(output),
    writes: written.flatMap(([name, price]) =>
      price === undefined || price === input ? [] : [`${name} ${perMillion(price)}`],
    ),
  };
}

/** The price as one sentence. */
export function priceWords({ when, rates }: PriceLine): string {
  const words =
    typeof rates === 'string'
      ? rates
      : [
          `${rates.input} in`,
          ...(rates.cached === rates.input ? [] : [`${rates.cached} cached`]),
          ...rates.writes,
          `${rates.output} out`,
        ].join(', ');
  return when === '' ? words : `${when}: ${words}`;
}

/** The models of an alias that are offered, in the order in which they are tried. */
export const aliasWords = (alias: { models: string[] }, models: readonly string[]): string =>
  alias.models.filter((model) => models.includes(model)).join(', else ');

/** The entries of a plan, one line each. */
export const planLines = (plan: PlanEntry): { name: string; words: string }[] =>
  plan.items.map((item) => {
    const calls =
      item.value === -1 ? 'unlimited calls' : `${item.value.toLocaleString('en-US')} calls a month`;
    return { name: item.name || item.id, words: `${calls} (${item.models.join(', ')})` };
  });

/** Rows have prices of a thousand tokens. Exact: a float would show 0.30000000000000004. */
const perMillion = (perThousand: number): string => `¥${millionPrice(perThousand)}`;

/** Never in scientific notation: 0.0000015, not 1.5e-6. */
export const yuan = (amount: number): string => `¥${formatDecimal(toPico(amount), priceDecimals)}`;
