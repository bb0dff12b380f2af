/** The models that a caller can use, as `/v1/models` lists them. */
import { pricedModels } from '../../billing/price-rule.ts';
import { needsPrice, type Snapshot } from '../../config/snapshot.ts';
import type { ModelEntry, ModelList } from '../../wire/public/catalog.ts';
import type { RelayRequest } from '../http/http.ts';
import { modelIdOf } from '../http/http-routes.ts';
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
  (settings.aliases ?? []).filter(({ name, models }) => {
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
