/**
 * The public read endpoints: models, charge, plans, health, the OpenAPI document and the pages. They need no key and ignore any
 * that is sent.
 */
import {
  type Handle,
  type RelayRequest,
  type RelayResponse,
  isAccountRoute,
  matchRoute,
  type RouteName,
} from '../http/http.ts';
import { createLoggedHandle } from '../http/logged-handle.ts';
import { answerRefusal } from '../../endpoints/messages/errors.ts';
import { listHeaders } from '../../endpoints/routes.ts';
import type { AnswerForm } from '../http/refusal.ts';
import { refuseRoute } from '../http/refuse-route.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import { listAgeMsMax } from '../ports/config-store.ts';
import type { PageRequest } from './page-answers.ts';
import {
  listModels,
  listOfferedModels,
  findModel,
  isOfMessages,
  listCharges,
  listPlans,
} from './catalog-lists.ts';

export interface CatalogPorts extends Pick<ChatPorts, 'config' | 'log' | 'clock' | 'health'> {
  /** The version that `/health` reports. */
  version: string;
  /** Serves the paths of an account, which need a key. */
  account: Handle;
}

export const createCatalogHandle = (ports: CatalogPorts): Handle =>
  createLoggedHandle(
    ports,
    {
      endpoint: 'catalog',
      failuresOnly: true,
      formOf: (request) => (isOfMessages(request) ? messagesForm : undefined),
    },
    async (request) => {
      const route = matchRoute(request);
      if (isAccountRoute(route)) return ports.account(request);
      if (route === undefined || !isReadRoute(route)) throw refuseRoute(request);
      const fresh = ports.config.notOlderThan(listAgeMsMax);
      // Lists may be old if the store fails. A single model must be fresh: an old list could deny a new model.
      const snapshot = await (route === 'model' ? fresh : fresh.catch(() => ports.config.current()));
      return answers[route]({ request, snapshot, nowMs: ports.clock.now(), ports });
    },
  );

const messagesForm: AnswerForm = {
  refused: answerRefusal,
  answerHeaders: (requestId) => ({ 'request-id': requestId }),
};

type PageRoute = 'page' | 'account_page' | 'asset' | 'openapi';
type ReadRoute = 'models' | 'model' | 'charge' | 'plans' | 'health' | PageRoute;

interface Asked extends PageRequest {
  ports: CatalogPorts;
}

const answers: Record<ReadRoute, (asked: Asked) => RelayResponse | Promise<RelayResponse>> = {
  models: ({ request, snapshot, nowMs }) => listAnswer(request, listModels(request, snapshot, nowMs)),
  model: ({ request, snapshot, nowMs }) => listAnswer(request, findModel(request, snapshot, nowMs)),
  charge: ({ request, snapshot, nowMs }) => answerJson(request, listCharges(snapshot, nowMs)),
  plans: ({ request, snapshot }) => answerJson(request, listPlans(snapshot)),
  health: (asked) => answerJson(asked.request, describeHealth(asked)),
  page: (asked) => answerPage(asked, 'page'),
  account_page: (asked) => answerPage(asked, 'account_page'),
  asset: (asked) => answerPage(asked, 'asset'),
  openapi: (asked) => answerPage(asked, 'openapi'),
};

const isReadRoute = (route: RouteName): route is ReadRoute => Object.hasOwn(answers, route);

const describeHealth = ({ snapshot, nowMs, ports }: Asked) => ({
  status: 'ok',
  version: ports.version,
  relay_closed: snapshot.settings.relayClosed,
  models: listOfferedModels(snapshot, nowMs).length,
  config_published_at: snapshot.publishedAt,
});

async function answerPage(asked: Asked, name: PageRoute): Promise<RelayResponse> {
  const { pageAnswers } = await import('./page-answers.ts');
  const { status = 200, body, headers } = await pageAnswers[name](asked);
  return { ...allowCaching(asked.request, body, headers), status };
}

const answerJson = (request: RelayRequest, value: object): RelayResponse =>
  allowCaching(request, JSON.stringify(value), { 'content-type': 'application/json' });

/** Its form depends on who asks, as caches behind the distribution have to know. */
const listAnswer = (request: RelayRequest, value: object): RelayResponse =>
  allowCaching(request, JSON.stringify(value), {
    'content-type': 'application/json',
    vary: listHeaders.join(', '),
  });

/** The distribution may cache a response for 5 s; an edit of a table is then still visible within 10 s. */
const allowCaching = (
  request: RelayRequest,
  body: string,
  headers: Record<string, string>,
): RelayResponse => ({
  status: 200,
  headers: { 'cache-control': 'public, max-age=5', ...headers, 'x-request-id': request.id },
  body,
  done: Promise.resolve(),
});
