/** The paths that are served, but for those of stored responses. */
import { endpointRoutes } from '../../endpoints/routes.ts';
import type { RelayRequest } from './http.ts';

/** For any other path or method, the function that receives the request responds with 404 or 405. */
export const routes = [
  ...Object.values(endpointRoutes),
  { name: 'models', method: 'GET', path: '/v1/models' },
  { name: 'charge', method: 'GET', path: '/v1/charge' },
  { name: 'plans', method: 'GET', path: '/v1/plans' },
  { name: 'account', method: 'GET', path: '/v1/account' },
  { name: 'usage', method: 'GET', path: '/v1/account/usage' },
  { name: 'health', method: 'GET', path: '/health' },
  { name: 'page', method: 'GET', path: '/' },
  { name: 'account_page', method: 'GET', path: '/account' },
] as const;

/** The path of one model is this prefix and the model's id, which may contain slashes. */
export const modelPrefix = '/v1/models/';
const modelRoute = { name: 'model', method: 'GET', path: '/v1/models/{id}' } as const;

/** The path of one stored response is this prefix, its id, and what is done with it. */
export const responsesPrefix = `${endpointRoutes.responses.path}/`;

/** What the pages load. */
const assetPrefix = '/assets/';
const assetRoute = { name: 'asset', method: 'GET', path: '/assets/{name}' } as const;

type Route = (typeof routes)[number] | typeof modelRoute | typeof assetRoute;
export type RouteName = Route['name'];

/**
 * The endpoint for a path and method; HEAD counts as GET. Undefined: none; the caller throws `refuseRoute`.
 */
export const matchRoute = (request: RelayRequest): RouteName | undefined =>
  routesAt(request.path).find((route) => methodsOf(route).includes(request.method))?.name;

/** The id in `/v1/models/{id}`: the decoded rest of the path. */
export const modelIdOf = (request: RelayRequest): string => request.path.slice(modelPrefix.length);

/** The routes of a path: several if it takes several methods. */
export function routesAt(path: string): Route[] {
  if (path.startsWith(modelPrefix) && path.length > modelPrefix.length) return [modelRoute];
  if (path.startsWith(assetPrefix) && path.length > assetPrefix.length) return [assetRoute];
  return routes.filter((route) => route.path === path);
}

export const methodsOf = ({ method }: { method: string }): string[] =>
  method === 'GET' ? ['GET', 'HEAD'] : [method];
