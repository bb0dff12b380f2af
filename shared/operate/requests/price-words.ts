/** Describes a unit price in words. */
import { formatDecimal } from '../../billing/amount.ts';
import type { Price } from '../../billing/price.ts';

export function priceWords(price: Price): string {
  const rule = price.rule === null ? 'no rule names the model' : `rule ${price.rule}`;
  if (price.type === 'non-billing') return `${rule}: free`;
  if (price.type === 'times-billing') return `${rule}: ${formatDecimal(price.perCall, 12)} yuan per call`;
  return `${rule}: ${formatDecimal(price.input, 12)} yuan per 1,000 input tokens, ${formatDecimal(price.output, 12)} per 1,000 output tokens`;
}
