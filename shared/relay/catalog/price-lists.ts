/**
 * Charges and plans for the public lists. Entries are built field by field, because rows hold fields that
 * must not be public.
 */
import { isInForce, ruleOf, sinceMs } from '../../billing/price-rule.ts';
import type { Snapshot } from '../../config/snapshot.ts';
import type { ChargeEntry, PlanEntry } from '../../wire/public/catalog.ts';

/**
 * The rules in force, by id, without models that a rule of a later `from` prices, so that the first rule of the list
 * that names a model prices it. A rule that is left without any is left out.
 */
export function listedCharges({ charges }: Snapshot, nowMs: number): ChargeEntry[] {
  const inForce = charges.filter((rule) => isInForce(rule, nowMs));
  return inForce.flatMap((rule) => {
    const { id, type, input, output, anonymous } = rule;
    const models = rule.models.filter(
      (model) => sinceMs(ruleOf(inForce, model, nowMs) ?? rule) === sinceMs(rule),
    );
    if (models.length === 0 && rule.models.length > 0) return [];
    return [{ id, type, models, input, output, anonymous }];
  });
}

/** Empty unless subscriptions are enabled. */
export const offeredPlans = ({ settings, plans }: Snapshot): PlanEntry[] =>
  settings.subscriptionEnabled ? plans.map(planEntry) : [];

const planEntry = ({ level, price, items }: PlanEntry): PlanEntry => ({
  level,
  price,
  items: items.map(({ id, name, icon, value, models }) => ({ id, name, icon, value, models })),
});
