/** The models that a caller can use, as `/v1/models` lists them. */
import {
  buildPrice,
  findFactor,
  findRule,
  isInForce,
  listPriceChanges,
  listPricedModels,
  multiplyRate,
  startMsOf,
  type PriceRule,
} from '../../billing/price.ts';
import { findNextChange, findOpenWindow } from '../../billing/schedule.ts';
import { needsPrice, type Snapshot } from '../../config/snapshot.ts';
import type {
  ChargeEntry,
  MessagesModel,
  MessagesModelList,
  ModelEntry,
  ModelList,
  PlanEntry,
} from '../../wire/public-api.ts';
import { type RelayRequest, modelIdOf } from '../http/http.ts';
import { removeWindow } from '../call/access.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { refuse } from '../http/refusal.ts';
import { listHeaders } from '../../endpoints/routes.ts';

/** All models that are served, without unpriced ones when the settings refuse those. */
export function listOfferedModels(
  snapshot: Pick<Snapshot, 'settings' | 'models' | 'charges' | 'unreadPrices'>,
  nowMs: number,
): string[] {
  const priced = listPricedModels(snapshot.charges, nowMs);
  return snapshot.models.filter((model) => priced.has(model) || !needsPrice(snapshot, model));
}

/** The aliases of which at least one model is offered. */
export const listOfferedAliases = (
  { settings }: Snapshot,
  offered: readonly string[],
): NonNullable<Snapshot['settings']['aliases']> =>
  settings.aliases.filter(({ name, models }) => {
    const isServed = models.some((model) => offered.includes(model));
    return isServed && !offered.includes(name);
  });

/** Models, then aliases. */
function listOfferedNames(snapshot: Snapshot, nowMs: number): string[] {
  const models = listOfferedModels(snapshot, nowMs);
  return [...models, ...listOfferedAliases(snapshot, models).map(({ name }) => name)];
}

export function listModels(
  request: RelayRequest,
  snapshot: Snapshot,
  nowMs: number,
): ModelList | MessagesModelList {
  const names = listOfferedNames(snapshot, nowMs);
  if (isOfMessages(request)) return listModelsForMessages(names, request.query);
  return {
    object: 'list',
    data: names.map((id) => describeModel(id, snapshot.publishedAt)),
    ...(request.query.has('client_version') && { models: [] }),
  };
}

/** The model that the path names. Throws a Refusal when it is not offered. */
export function findModel(
  request: RelayRequest,
  snapshot: Snapshot,
  nowMs: number,
): ModelEntry | MessagesModel {
  const id = removeWindow(modelIdOf(request));
  const entry = isOfMessages(request) ? describeModelForMessages : describeModel;
  if (listOfferedNames(snapshot, nowMs).includes(id)) return entry(id, snapshot.publishedAt);
  const message = `The model does not exist. GET ${request.baseUrl}/models lists all models.`;
  throw refuse('model_not_found', message, { param: 'model' });
}

const describeModel = (id: string, created: number): ModelEntry => ({
  id,
  object: 'model',
  created,
  owned_by: 'system',
});

// The same models as Anthropic's clients read them: by pages, from one id on or before one.

export const isOfMessages = ({ headers }: RelayRequest): boolean =>
  listHeaders.some((name) => headers[name] !== undefined);

const pageUsual = 20;
const pageMax = 1_000;

function listModelsForMessages(names: readonly string[], query: URLSearchParams): MessagesModelList {
  const limit = Number(query.get('limit') || pageUsual);
  if (!Number.isInteger(limit) || limit < 1 || limit > pageMax)
    throw new InvalidRequest('invalid_value', 'limit', `limit must be a whole number from 1 to ${pageMax}.`);
  const after = names.indexOf(query.get('after_id') ?? '');
  const before = names.indexOf(query.get('before_id') ?? '');
  // A page before an id is the one that ends there.
  const from = before >= 0 ? Math.max(0, before - limit) : after + 1;
  const to = before >= 0 ? before : from + limit;
  const page = names.slice(from, to);
  return {
    data: page.map(describeModelForMessages),
    has_more: before >= 0 ? from > 0 : to < names.length,
    first_id: page.at(0) ?? null,
    last_id: page.at(-1) ?? null,
  };
}

/** Anthropic itself sends the epoch for a model whose release date is unknown. */
const unknownRelease = '1970-01-01T00:00:00Z';

const describeModelForMessages = (id: string): MessagesModel => ({
  type: 'model',
  id,
  display_name: id,
  created_at: unknownRelease,
});

// Charges and plans for the public lists. Entries are built field by field, because rows hold fields that
// must not be public.

/**
 * The rules in force, by id, without models that a rule of a later `from` prices, so that the first rule of the list
 * that names a model prices it. A rule that is left without any is left out.
 */
export function listCharges({ charges }: Snapshot, nowMs: number): ChargeEntry[] {
  const inForce = charges.filter((rule) => isInForce(rule, nowMs));
  return inForce.flatMap((rule) => {
    const { id, type, anonymous, windows } = rule;
    const models = rule.models.filter(
      (model) => startMsOf(findRule(inForce, model, nowMs) ?? rule) === startMsOf(rule),
    );
    if (models.length === 0 && rule.models.length > 0) return [];
    return [
      {
        id,
        type,
        models,
        ...findCurrentPrices(rule, nowMs),
        anonymous,
        // Rules without windows omit these fields.
        ...(windows && {
          window: findOpenWindow(windows, nowMs)?.name ?? null,
          until: formatUntil(findNextChange(windows, nowMs), listPriceChanges(charges, models, nowMs)),
        }),
      },
    ];
  });
}

/** Returns the prices of the open window, else those of the rule. */
function findCurrentPrices(rule: PriceRule, nowMs: number): Pick<ChargeEntry, 'input' | 'output'> {
  const open = findOpenWindow(rule.windows, nowMs);
  if (!open) return { input: rule.input, output: rule.output };
  const price = buildPrice(rule, [], open);
  const factor = findFactor(price);
  if (price.type === 'token-billing') {
    const [{ rates }] = price.tiers;
    return { input: multiplyRate(rates.input, factor), output: multiplyRate(rates.output, factor) };
  }
  const perCall = price.type === 'times-billing' ? price.perCall : 0n;
  return { input: 0, output: multiplyRate(perCall, factor) };
}

/** Returns when a price with windows changes next, in Unix seconds: at the end of a window, or when a later rule takes over. */
export function formatUntil(
  windowEndMs = Infinity,
  [takeover]: readonly { fromMs: number }[] = [],
): number | null {
  const untilMs = Math.min(windowEndMs, takeover?.fromMs ?? Infinity);
  return untilMs === Infinity ? null : Math.floor(untilMs / 1000);
}

/** Empty unless subscriptions are enabled. */
export const listPlans = ({ settings, plans }: Snapshot): PlanEntry[] =>
  settings.subscriptionEnabled ? plans.map(planEntry) : [];

const planEntry = ({ level, price, items }: PlanEntry): PlanEntry => ({
  level,
  price,
  items: items.map(({ id, name, icon, value, models }) => ({ id, name, icon, value, models })),
});
