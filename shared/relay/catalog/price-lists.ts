/**
 * Charges and plans for the public lists. Entries are built field by field, because rows hold fields that
 * must not be public.
 */
import type { Snapshot } from '../../config/snapshot.ts';
import type { ChargeEntry, PlanEntry } from '../../wire/public/catalog.ts';

export const listedCharges = ({ charges }: Snapshot): ChargeEntry[] =>
  charges.map(({ id, type, models, input, output, anonymous }) => ({
    id,
    type,
    models,
    input,
    output,
    anonymous,
  }));

/** Empty unless subscriptions are enabled. */
export const offeredPlans = ({ settings, plans }: Snapshot): PlanEntry[] =>
  settings.subscriptionEnabled ? plans.map(planEntry) : [];

const planEntry = ({ level, price, items }: PlanEntry): PlanEntry => ({
  level,
  price,
  items: items.map(({ id, name, icon, value, models }) => ({ id, name, icon, value, models })),
});
