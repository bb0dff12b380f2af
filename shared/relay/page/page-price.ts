/** Formats prices and plans as text. */
import { ruleOf } from '../../billing/price.ts';
import type { ChargeEntry, PlanEntry } from '../../wire/public/catalog.ts';

/** The price of a model, from the first rule that names it. */
export function priceOf(model: string, charges: ChargeEntry[]): string {
  const charge = ruleOf(charges, model);
  if (charge === undefined || charge.type === 'non-billing') return 'free';
  if (charge.type === 'times-billing')
    return charge.output === 0 ? 'free' : `${yuan(charge.output)} per call`;
  if (charge.input === 0 && charge.output === 0) return 'free';
  return `${yuan(charge.input)} in, ${yuan(charge.output)} out, per 1,000 tokens`;
}

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
