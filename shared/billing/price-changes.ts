/** Prices that are announced: rules whose `from` has not come yet. */
import { ruleOf, type PriceRule } from './price-rule.ts';

export interface PriceChange<Rule = PriceRule> {
  fromMs: number;
  /** Prices the models from then on. */
  rule: Rule;
  models: string[];
}

/** By time. A rule that another one precedes at its time changes nothing, so it is left out. */
export const priceChanges = <Rule extends Pick<PriceRule, 'models' | 'from'>>(
  charges: readonly Rule[],
  models: readonly string[],
  nowMs: number,
): PriceChange<Rule>[] =>
  charges
    .flatMap((rule) => {
      const { from = nowMs } = rule;
      if (from <= nowMs) return [];
      const named = new Set(rule.models);
      const changed = models.filter((model) => named.has(model) && ruleOf(charges, model, from) === rule);
      return changed.length === 0 ? [] : [{ fromMs: from, rule, models: changed }];
    })
    .toSorted((a, b) => a.fromMs - b.fromMs);
