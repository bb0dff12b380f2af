/**
 * The public read endpoints: models, charge, plans, health and the page. They need no key and ignore any that
 * is sent.
 */
import type { Snapshot } from '../../config/snapshot.ts';
import type { Handle, RelayRequest, RelayResponse } from '../http/http.ts';
import { matchRoute, type RouteName } from '../http/http-routes.ts';
import { refuseRoute } from '../http/refuse-route.ts';
import { asRefusal, refusalResponse, refuse } from '../http/refusal.ts';
import { page } from '../page/page.ts';
import type { Clock } from '../ports/clock.ts';
import { listAgeMsMax, type ConfigSource } from '../ports/stores/config-store.ts';
import type { Log } from '../ports/telemetry.ts';
import { modelList, offeredAliases, offeredModels, oneModel } from './model-list.ts';
import { listedCharges, offeredPlans } from './price-lists.ts';

export interface CatalogPorts {
  config: ConfigSource;
  log: Log;
  clock: Clock;
  /** The version that `/health` reports. */
  version: string;
  /** Serves the paths of an account, which need a key. */
  account: Handle;
}

export function catalogHandle(ports: CatalogPorts): Handle {
  return async (request) => {
    const startedMs = ports.clock.now();
    try {
      const route = matchRoute(request);
      if (route === 'account' || route === 'usage') return await ports.account(request);
      if (route === undefined || !isReadRoute(route)) throw refuseRoute(request);
      const fresh = ports.config.notOlderThan(listAgeMsMax);
      // An old list is better than none, but a model that may have been added is not refused.
      const snapshot = await (route === 'model' ? fresh : fresh.catch(() => ports.config.current()));
      return answers[route]({ request, snapshot, nowMs: ports.clock.now(), version: ports.version });
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

interface Asked {
  request: RelayRequest;
  snapshot: Snapshot;
  /** Decides which rules are in force. */
  nowMs: number;
  version: string;
}

const answers: Record<ReadRoute, (asked: Asked) => RelayResponse> = {
  models: ({ request, snapshot, nowMs }) => jsonAnswer(request, modelList(snapshot, request.query, nowMs)),
  model: ({ request, snapshot, nowMs }) => jsonAnswer(request, oneModel(request, snapshot, nowMs)),
  charge: ({ request, snapshot, nowMs }) => jsonAnswer(request, listedCharges(snapshot, nowMs)),
  plans: ({ request, snapshot }) => jsonAnswer(request, offeredPlans(snapshot)),
  health: (asked) => jsonAnswer(asked.request, health(asked)),
  page: pageAnswer,
};

const isReadRoute = (route: RouteName): route is ReadRoute => Object.hasOwn(answers, route);

const health = ({ snapshot, nowMs, version }: Asked) => ({
  status: 'ok',
  version,
  relay_closed: snapshot.settings.relayClosed,
  models: offeredModels(snapshot, nowMs).length,
  config_published_at: snapshot.publishedAt,
});

function pageAnswer({ request, snapshot, nowMs }: Asked): RelayResponse {
  const { baseUrl, headers: asked } = request;
  const { charges, settings } = snapshot;
  if (!settings.page)
    throw refuse('not_found', `This relay has no page. The base URL for clients is ${baseUrl}.`);
  const models = offeredModels(snapshot, nowMs);
  const facts = {
    baseUrl,
    models,
    aliases: offeredAliases(snapshot, models),
    charges,
    nowMs,
    plans: offeredPlans(snapshot),
    contact: settings.contact,
    relayClosed: settings.relayClosed,
  };
  const { body, headers } = page(facts, asked['accept'] ?? '');
  return cacheable(request, body, headers);
}

const jsonAnswer = (request: RelayRequest, value: object): RelayResponse =>
  cacheable(request, JSON.stringify(value), { 'content-type': 'application/json' });

/** The distribution may cache a response for 5 s; an edit of a table is then still visible within 10 s. */
const cacheable = (request: RelayRequest, body: string, headers: Record<string, string>): RelayResponse => ({
  status: 200,
  headers: { ...headers, 'cache-control': 'public, max-age=5', 'x-request-id': request.id },
  body,
  done: Promise.resolve(),
});
