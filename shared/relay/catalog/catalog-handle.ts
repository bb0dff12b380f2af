import { pricedModels } from '../../billing/price.ts';
import type { Snapshot } from '../../config/snapshot.ts';
import type { ChargeEntry, ModelEntry, ModelList, PlanEntry } from '../../wire/catalog.ts';
import type { Handle, RelayRequest, RelayResponse } from '../http/http.ts';
import { page } from '../page/page.ts';
import type { Clock } from '../ports/clock.ts';
import type { Log } from '../ports/telemetry.ts';
import type { ConfigSource } from '../ports/config-store.ts';
import { asRefusal, refusalResponse, refuse } from '../http/refusal.ts';
import { matchRoute, modelIdOf, refuseRoute, type RouteName } from '../http/http-routes.ts';

export interface CatalogPorts {
  config: ConfigSource;
  log: Log;
  clock: Clock;
  /** What `/health` reports. */
  version: string;
  /** Answers the paths of an account, which do need a key. */
  account: Handle;
}

/** The public read endpoints: models, charge, plans, health and the page. They need no key and ignore one. */
export function catalogHandle(ports: CatalogPorts): Handle {
  return async (request) => {
    const startedMs = ports.clock.now();
    try {
      const route = matchRoute(request);
      if (route === 'account' || route === 'usage') return await ports.account(request);
      if (route === undefined || !isReadRoute(route)) throw refuseRoute(request);
      return answers[route](request, await ports.config.current(), ports.version);
    } catch (error) {
      const refusal = asRefusal(error);
      if (refusal.status >= 500) {
        const { code } = refusal.body.error;
        if (code === 'internal') ports.log.fault(request.id, error);
        ports.log.request({
          request_id: request.id,
          endpoint: 'catalog',
          status: refusal.status,
          end: 'failed',
          duration_ms: ports.clock.now() - startedMs,
          code,
          reason: refusal.reason,
        });
      }
      return refusalResponse(refusal, request.id);
    }
  };
}

type ReadRoute = 'models' | 'model' | 'charge' | 'plans' | 'health' | 'page';

const answers: Record<
  ReadRoute,
  (request: RelayRequest, snapshot: Snapshot, version: string) => RelayResponse
> = {
  models: (request, snapshot) => jsonAnswer(request, modelList(snapshot, request.query)),
  model: (request, snapshot) => jsonAnswer(request, oneModel(request, snapshot)),
  charge: (request, snapshot) => jsonAnswer(request, snapshot.charges.map(chargeEntry)),
  plans: (request, snapshot) => jsonAnswer(request, offeredPlans(snapshot)),
  health: (request, snapshot, version) => jsonAnswer(request, health(snapshot, version)),
  page: (request, snapshot) => pageAnswer(request, snapshot),
};

const isReadRoute = (route: RouteName): route is ReadRoute => Object.hasOwn(answers, route);

/** The models that a caller can use: all that are served, less the unpriced ones where those are refused. */
export function offeredModels(snapshot: Snapshot): string[] {
  if (snapshot.settings.unpricedModels === 'free') return snapshot.models;
  const priced = pricedModels(snapshot.charges);
  return snapshot.models.filter((model) => priced.has(model));
}

const modelEntry = (id: string, created: number): ModelEntry => ({
  id,
  object: 'model',
  created,
  owned_by: 'system',
});

const modelList = (snapshot: Snapshot, query: URLSearchParams): ModelList => ({
  object: 'list',
  data: offeredModels(snapshot).map((id) => modelEntry(id, snapshot.publishedAt)),
  ...(query.has('client_version') && { models: [] }),
});

function oneModel(request: RelayRequest, snapshot: Snapshot): ModelEntry {
  const id = modelIdOf(request);
  if (offeredModels(snapshot).includes(id)) return modelEntry(id, snapshot.publishedAt);
  throw refuse(
    'model_not_found',
    `There is no model of that name here. GET ${request.baseUrl}/models lists them.`,
    {
      param: 'model',
    },
  );
}

const chargeEntry = ({ id, type, models, input, output, anonymous }: ChargeEntry): ChargeEntry => ({
  id,
  type,
  models,
  input,
  output,
  anonymous,
});

const offeredPlans = (snapshot: Snapshot): PlanEntry[] =>
  snapshot.settings.subscriptionEnabled ? snapshot.plans.map(planEntry) : [];

const planEntry = ({ level, price, items }: PlanEntry): PlanEntry => ({
  level,
  price,
  items: items.map(({ id, name, icon, value, models }) => ({ id, name, icon, value, models })),
});

const health = (snapshot: Snapshot, version: string) => ({
  status: 'ok',
  version,
  relay_closed: snapshot.settings.relayClosed,
  models: offeredModels(snapshot).length,
  config_published_at: snapshot.publishedAt,
});

function pageAnswer(request: RelayRequest, snapshot: Snapshot): RelayResponse {
  if (!snapshot.settings.page)
    throw refuse('not_found', `This relay has no page. The base URL for clients is ${request.baseUrl}.`);
  const { body, headers } = page(
    {
      baseUrl: request.baseUrl,
      models: offeredModels(snapshot),
      charges: snapshot.charges,
      plans: offeredPlans(snapshot),
      contact: snapshot.settings.contact,
      relayClosed: snapshot.settings.relayClosed,
    },
    request.headers['accept'] ?? '',
  );
  return cacheable(request, body, headers);
}

const jsonAnswer = (request: RelayRequest, value: object): RelayResponse =>
  cacheable(request, JSON.stringify(value), { 'content-type': 'application/json' });

/** The edge may keep an answer for 5 s; an edit of a table stays visible within its 10 s. */
const cacheable = (request: RelayRequest, body: string, headers: Record<string, string>): RelayResponse => ({
  status: 200,
  headers: { ...headers, 'cache-control': 'public, max-age=5', 'x-request-id': request.id },
  body,
  done: Promise.resolve(),
});
