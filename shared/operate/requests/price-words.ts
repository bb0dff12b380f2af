/** Describes a unit price in words. */
import { formatDecimal } from '../../billing/amount.ts';
import { priceDecimals, ratePerMillion, type PicoYuan, type Price, type Tier } from '../../billing/price.ts';

export function priceWords(price: Price): string {
  const rule = price.rule === null ? 'no rule names the model' : `rule ${price.rule}`;
  if (price.type === 'non-billing') return `${rule}: free`;
  if (price.type === 'times-billing') return `${rule}: ${yuan(price.perCall)} yuan per call`;
  return `${rule}: ${price.tiers.map(tierWords).join('; ')}`;
}

/** Prices of the cache are named only where one differs from that of input. */
function tierWords({ above, rates }: Tier): string {
  const { input, output, cachedInput, cacheWrite, cacheWrite1h } = rates;
  const cache = Object.entries({
    cached: cachedInput,
    'written to the cache': cacheWrite,
    'written to it for an hour': cacheWrite1h,
  }).map(([name, rate]) => `, ${ratePerMillion(rate)} ${name}`);
  const differs = [cachedInput, cacheWrite, cacheWrite1h].some((rate) => rate !== input);
  const tier = above > 0 ? `above ${above} input tokens, ` : '';
  return `${tier}${ratePerMillion(input)} yuan per million input tokens${differs ? cache.join('') : ''}, ${ratePerMillion(output)} per million output tokens`;
}

const yuan = (pico: PicoYuan): string => formatDecimal(pico, priceDecimals);
