/** Every path that is served. */
import { chatRoute } from '../../endpoints/chat/route.ts';
import { responsesRoute, storedResponseRoutes } from '../../endpoints/responses/route.ts';
import type { RelayRequest } from './http.ts';

/** For any other path or method, the function that receives the request responds with 404 or 405. */
export const routes = [
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
export const modelPrefix = '/v1/models/';
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

/** The routes of a path: several if it takes several methods. */
export function routesAt(path: string): Route[] {
  if (path.startsWith(modelPrefix) && path.length > modelPrefix.length) return [modelRoute];
  if (path.startsWith(storedPrefix)) return storedRoutesAt(path);
  return routes.filter((route) => route.path === path);
}

export function storedRoutesAt(path: string): Route[] {
  const id = storedIdOf({ path });
  if (id === '' || notIds.has(id)) return [];
  const below = path.slice(storedPrefix.length + id.length);
  return storedResponseRoutes.filter((route) => route.path === `${storedPrefix}{id}${below}`);
}

export const methodsOf = ({ method }: Route): string[] => (method === 'GET' ? ['GET', 'HEAD'] : [method]);
