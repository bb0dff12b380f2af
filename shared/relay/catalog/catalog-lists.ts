/** The models that a caller can use, as `/v1/models` lists them. */
import { pricedModels, isInForce, ruleOf, sinceMs } from '../../billing/price.ts';
import { needsPrice, type Snapshot } from '../../config/snapshot.ts';
import type { ModelEntry, ModelList, ChargeEntry, PlanEntry } from '../../wire/public-api.ts';
import { type RelayRequest, modelIdOf } from '../http/http.ts';
import { refuse } from '../http/refusal.ts';

/** All models that are served, without unpriced ones when the settings refuse those. */
export function offeredModels(
  snapshot: Pick<Snapshot, 'settings' | 'models' | 'charges' | 'unreadPrices'>,
  nowMs: number,
): string[] {
  const priced = pricedModels(snapshot.charges, nowMs);
  return snapshot.models.filter((model) => priced.has(model) || !needsPrice(snapshot, model));
}

/** The aliases of which at least one model is offered. */
export const offeredAliases = (
  { settings }: Snapshot,
  offered: readonly string[],
): NonNullable<Snapshot['settings']['aliases']> =>
  settings.aliases.filter(({ name, models }) => {
    const isServed = models.some((model) => offered.includes(model));
    return isServed && !offered.includes(name);
  });

/** Models, then aliases. */
function offeredNames(snapshot: Snapshot, nowMs: number): string[] {
  const models = offeredModels(snapshot, nowMs);
  return [...models, ...offeredAliases(snapshot, models).map(({ name }) => name)];
}

export const modelList = (snapshot: Snapshot, query: URLSearchParams, nowMs: number): ModelList => ({
  object: 'list',
  data: offeredNames(snapshot, nowMs).map((id) => modelEntry(id, snapshot.publishedAt)),
  ...(query.has('client_version') && { models: [] }),
});

/** The model that the path names. Throws a Refusal when it is not offered. */
export function oneModel(request: RelayRequest, snapshot: Snapshot, nowMs: number): ModelEntry {
  const id = modelIdOf(request);
  if (offeredNames(snapshot, nowMs).includes(id)) return modelEntry(id, snapshot.publishedAt);
  const message = `There is no model of that name here. GET ${request.baseUrl}/models lists them.`;
  throw refuse('model_not_found', message, { param: 'model' });
}

const modelEntry = (id: string, created: number): ModelEntry => ({
  id,
  object: 'model',
  created,
  owned_by: 'system',
});

// Charges and plans for the public lists. Entries are built field by field, because rows hold fields that
// must not be public.

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
