/** The paths of one stored response. Loaded by the first request below the path of Responses. */
import { methodsOf, responsesPrefix } from './http-routes.ts';
import type { RelayRequest } from './http.ts';

/** With the method that each takes. `{id}` is one segment. */
export const storedResponseRoutes = [
  { name: 'response', method: 'GET', path: '/v1/responses/{id}' },
  { name: 'response_delete', method: 'DELETE', path: '/v1/responses/{id}' },
  { name: 'response_input_items', method: 'GET', path: '/v1/responses/{id}/input_items' },
  { name: 'response_cancel', method: 'POST', path: '/v1/responses/{id}/cancel' },
] as const;

export type StoredRoute = (typeof storedResponseRoutes)[number];
export type StoredRouteName = StoredRoute['name'];

/** No ids: what OpenAI offers in their place, and the end of a path that was put together wrong. */
const notIds = new Set(['compact', 'input_tokens', 'responses']);

/** As `matchRoute`. */
export const matchStoredRoute = ({ method, path }: RelayRequest): StoredRouteName | undefined =>
  storedRoutesAt(path).find((route) => methodsOf(route).includes(method))?.name;

/** The id in `/v1/responses/{id}` and below: the decoded segment, whatever it holds. */
export const storedIdOf = ({ path }: Pick<RelayRequest, 'path'>): string =>
  path.slice(responsesPrefix.length).split('/', 1).join('');

export function storedRoutesAt(path: string): StoredRoute[] {
  const id = storedIdOf({ path });
  if (!path.startsWith(responsesPrefix) || id === '' || notIds.has(id)) return [];
  const below = path.slice(responsesPrefix.length + id.length);
  return storedResponseRoutes.filter((route) => route.path === `${responsesPrefix}{id}${below}`);
}
