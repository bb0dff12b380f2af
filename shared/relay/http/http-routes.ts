/** Every path that is served, and suggestions for clients that call another path. */
import { chatRoute } from '../../endpoints/chat/route.ts';
import { compactByClient } from '../../endpoints/responses/compaction.ts';
import { responsesRoute, storedResponseRoutes } from '../../endpoints/responses/route.ts';
import type { RelayRequest } from './http.ts';
import { refuse } from './refusal.ts';
import type { Refusal } from './refusal.ts';

/** For any other path or method, the function that receives the request responds with 404 or 405. */
const routes = [
  chatRoute,
  responsesRoute,
  { name: 'models', method: 'GET', path: '/v1/models' },
  { name: 'charge', method: 'GET', path: '/v1/charge' },
  { name: 'plans', method: 'GET', path: '/v1/plans' },
  { name: 'account', method: 'GET', path: '/v1/account' },
  { name: 'usage', method: 'GET', path: '/v1/account/usage' },
  { name: 'health', method: 'GET', path: '/health' },
  { name: 'page', method: 'GET', path: '/' },
] as const;

/** The path of one model is this prefix and the model's id, which may contain slashes. */
const modelPrefix = '/v1/models/';
const modelRoute = { name: 'model', method: 'GET', path: '/v1/models/{id}' } as const;

/** The path of one stored response is this prefix, its id, and what is done with it. */
const storedPrefix = `${responsesRoute.path}/`;
/** No ids: what OpenAI offers in their place, and the end of a path that was put together wrong. */
const notIds = new Set(['compact', 'input_tokens', 'responses']);

type StoredRoute = (typeof storedResponseRoutes)[number];
type Route = (typeof routes)[number] | typeof modelRoute | StoredRoute;
export type RouteName = Route['name'];
export type StoredRouteName = StoredRoute['name'];

/**
 * The endpoint for a path and method; HEAD counts as GET. Undefined: none; the caller throws `refuseRoute`.
 */
export const matchRoute = (request: RelayRequest): RouteName | undefined =>
  routesAt(request.path).find((route) => methodsOf(route).includes(request.method))?.name;

/** The same, of a stored response alone. */
export function matchStoredRoute(request: RelayRequest): StoredRouteName | undefined {
  const name = matchRoute(request);
  return storedResponseRoutes.find((route) => route.name === name)?.name;
}

/** The id in `/v1/models/{id}`: the decoded rest of the path. */
export const modelIdOf = (request: RelayRequest): string => request.path.slice(modelPrefix.length);

/** The id in `/v1/responses/{id}` and below: the decoded segment, whatever it holds. */
export const storedIdOf = ({ path }: Pick<RelayRequest, 'path'>): string =>
  path.slice(storedPrefix.length).split('/', 1).join('');

/** A refusal that explains why the path or method is not served and what to call instead. */
export function refuseRoute(request: RelayRequest): Refusal {
  const { baseUrl, method, path } = request;
  const found = routesAt(path);
  const methods = found.flatMap(methodsOf);
  const [route] = found;
  if (route && !methods.includes(method)) {
    const hint =
      route.name === 'chat' || route.name === 'responses'
        ? ` Send a JSON body with POST ${baseUrl}${belowBase(route.path)}.`
        : '';
    const taken = found.map((each) => each.method).join(' or ');
    return refuse('method_not_allowed', `${shown(path)} takes ${taken}, not ${shown(method)}.${hint}`, {
      headers: { allow: methods.join(', ') },
    });
  }
  // The distribution routes by the raw path, so an escaped path can reach a function that does not serve it.
  if (route)
    return refuse(
      'not_found',
      `The path was sent with escapes such as %2F. Send it as ${shown(baseUrl + belowBase(path))}.`,
    );
  if (path.endsWith(`${belowBase(responsesRoute.path)}/compact`))
    return refuse('not_found', `Conversations are not compacted here. ${compactByClient}`);
  const meant = meantPath(path);
  if (meant !== undefined)
    return refuse('not_found', `There is nothing at ${shown(path)}. ${suggestion(baseUrl, meant)}`);
  return refuse(
    'not_found',
    `${shown(path)} is not offered here. This relay offers ${offered()}. Its base URL is ${baseUrl}.`,
  );
}

/** The routes of a path: several if it takes several methods. */
function routesAt(path: string): Route[] {
  if (path.startsWith(modelPrefix) && path.length > modelPrefix.length) return [modelRoute];
  if (path.startsWith(storedPrefix)) return storedRoutesAt(path);
  return routes.filter((route) => route.path === path);
}

function storedRoutesAt(path: string): Route[] {
  const id = storedIdOf({ path });
  if (id === '' || notIds.has(id)) return [];
  const below = path.slice(storedPrefix.length + id.length);
  return storedResponseRoutes.filter((route) => route.path === `${storedPrefix}{id}${below}`);
}

const methodsOf = ({ method }: Route): string[] => (method === 'GET' ? ['GET', 'HEAD'] : [method]);

const belowBase = (path: string): string => path.replace(/^\/v1(?=\/)/, '');

const offered = (): string =>
  [...routes, ...storedResponseRoutes]
    .filter((route) => route.name !== 'page')
    .map((route) => `${route.method} ${route.path}`)
    .join(', ');

function suggestion(baseUrl: string, meant: string): string {
  if (!meant.startsWith('/v1/')) return `Did you mean ${meant}? Only the API lives under ${baseUrl}.`;
  return `The base URL of this relay is ${baseUrl}, which makes it ${shown(baseUrl + belowBase(meant))}.`;
}

/**
 * The path that a client probably meant: corrects a missing or doubled `/v1`, a foreign prefix and extra
 * slashes. Undefined when the path ends like no endpoint.
 */
function meantPath(path: string): string | undefined {
  const tidy = path.replaceAll(/\/{2,}/g, '/').replace(/\/$/, '');
  const model = /^(?:\/v1)*\/models\/(.+)$/.exec(tidy)?.[1];
  if (model !== undefined) return modelPrefix + model;
  const stored = responsesRoute.path + (/^(?:\/v1)*\/responses(\/.+)$/.exec(tidy)?.[1] ?? '');
  if (stored !== responsesRoute.path && storedRoutesAt(stored).length > 0) return stored;
  return routes.find((route) => route.path !== '/' && tidy.endsWith(belowBase(route.path)))?.path;
}

const shown = (text: string): string => (text.length > 120 ? `${text.slice(0, 120)}...` : text);
