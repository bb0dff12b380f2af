/** Refuses calls of another path or method, and suggests the one that the client may have meant. */
import { methodsOf, responsesPrefix, modelPrefix, routes, findRoutes, type RelayRequest } from './http.ts';
import { endpointRoutes } from '../../endpoints/routes.ts';
import { refuse, type Refusal } from './refusal.ts';

const { responses: responsesRoute } = endpointRoutes;

// The paths of one stored response. Loaded by the first request below the path of Responses.

/** With the method that each takes. `{id}` is one segment. */
export const storedResponseRoutes = [
  { name: 'response', method: 'GET', path: '/v1/responses/{id}' },
  { name: 'response_delete', method: 'DELETE', path: '/v1/responses/{id}' },
  { name: 'response_input_items', method: 'GET', path: '/v1/responses/{id}/input_items' },
  { name: 'response_cancel', method: 'POST', path: '/v1/responses/{id}/cancel' },
] as const;

type StoredRoute = (typeof storedResponseRoutes)[number];
export type StoredRouteName = StoredRoute['name'];

/** No ids: what OpenAI offers in their place, and the end of a path that was put together wrong. */
const notIds = new Set(['compact', 'input_tokens', 'responses']);

/** As `matchRoute`. */
export const matchStoredRoute = ({ method, path }: RelayRequest): StoredRouteName | undefined =>
  findStoredRoutes(path).find((route) => methodsOf(route).includes(method))?.name;

/** The id in `/v1/responses/{id}` and below: the decoded segment, whatever it holds. */
export const storedIdOf = ({ path }: Pick<RelayRequest, 'path'>): string =>
  path.slice(responsesPrefix.length).split('/', 1).join('');

function findStoredRoutes(path: string): StoredRoute[] {
  const id = storedIdOf({ path });
  if (!path.startsWith(responsesPrefix) || id === '' || notIds.has(id)) return [];
  const below = path.slice(responsesPrefix.length + id.length);
  return storedResponseRoutes.filter((route) => route.path === `${responsesPrefix}{id}${below}`);
}

// The paths of what customers do for their own account: of one function, so no other has them at its start.

const keyPath = '/v1/account/keys/{id}';
export const selfServiceRoutes = [
  { name: 'account_keys', method: 'GET', path: '/v1/account/keys' },
  { name: 'account_key_create', method: 'POST', path: '/v1/account/keys' },
  { name: 'account_key_edit', method: 'POST', path: keyPath },
  { name: 'account_key_delete', method: 'DELETE', path: keyPath },
  { name: 'account_key_rotate', method: 'POST', path: `${keyPath}/rotate` },
  { name: 'top_ups', method: 'POST', path: '/v1/account/top-ups' },
  { name: 'top_ups_state', method: 'GET', path: '/v1/account/top-ups' },
  { name: 'code_redeem', method: 'POST', path: '/v1/account/codes' },
] as const;

type SelfServiceRoute = (typeof selfServiceRoutes)[number];

/** As `matchRoute`. */
export const matchSelfServiceRoute = ({ method, path }: RelayRequest): SelfServiceRoute['name'] | undefined =>
  findSelfServiceRoutes(path).find((route) => methodsOf(route).includes(method))?.name;

/** The id in `/v1/account/keys/{id}` and below. */
export const accountKeyIdOf = ({ path }: Pick<RelayRequest, 'path'>): string => path.split('/')[4] ?? '';

const findSelfServiceRoutes = (path: string): SelfServiceRoute[] => {
  const shape = path.replace(/^(\/v1\/account\/keys\/)[^/]+/, '$1{id}');
  return selfServiceRoutes.filter((route) => route.path === shape);
};

/** A refusal that explains why the path or method is not served and what to call instead. */
export function refuseRoute(request: RelayRequest): Refusal {
  const { baseUrl, method, path } = request;
  const found = [...findRoutes(path), ...findStoredRoutes(path), ...findSelfServiceRoutes(path)];
  const methods = found.flatMap(methodsOf);
  const [route] = found;
  if (path === responsesRoute.path && asksForWebsocket(request))
    return refuse(
      'websocket_not_offered',
      `WebSockets are not supported. Send a JSON body with POST ${baseUrl}${cutBase(path)}; with "stream": true the answer is streamed as server-sent events.`,
    );
  if (route && !methods.includes(method)) {
    const hint = Object.hasOwn(endpointRoutes, route.name)
      ? ` Send a JSON body with POST ${baseUrl}${cutBase(route.path)}.`
      : '';
    const taken = found.map((each) => each.method).join(' or ');
    return refuse(
      'method_not_allowed',
      `${shorten(path)} supports ${taken}, not ${shorten(method)}.${hint}`,
      {
        headers: { allow: methods.join(', ') },
      },
    );
  }
  // The distribution routes by the raw path, so an escaped path can reach a function that does not serve it.
  if (route && route.name !== 'asset')
    return refuse(
      'not_found',
      `The path contains escapes such as %2F. Send it as ${shorten(baseUrl + cutBase(path))}.`,
    );
  const meant = findMeantPath(path);
  if (meant !== undefined)
    return refuse('not_found', `${shorten(path)} does not exist. ${suggestPath(baseUrl, meant)}`);
  return refuse(
    'not_found',
    `${shorten(path)} does not exist. This relay supports ${listOffered()}. Its base URL is ${baseUrl}.`,
  );
}

/** Codex goes on over HTTP at once after a 426, and tries again for 20 s after any other status. Distributions leave out `upgrade`. */
const asksForWebsocket = ({ method, headers }: RelayRequest): boolean =>
  method === 'GET' &&
  (headers['upgrade']?.toLowerCase() === 'websocket' ||
    headers['sec-websocket-key'] !== undefined ||
    Object.entries(headers).some(
      ([name, value]) => name.endsWith('-beta') && value?.includes('responses_websockets'),
    ));

const cutBase = (path: string): string => path.replace(/^\/v1(?=\/)/, '');

const listOffered = (): string =>
  [...routes, ...storedResponseRoutes, ...selfServiceRoutes]
    .filter((route) => route.name !== 'page' && route.name !== 'account_page')
    .map((route) => `${route.method} ${route.path}`)
    .join(', ');

function suggestPath(baseUrl: string, meant: string): string {
  if (!meant.startsWith('/v1/')) return `Did you mean ${meant}? Only the API is under ${baseUrl}.`;
  return `The base URL of this relay is ${baseUrl}, so use ${shorten(baseUrl + cutBase(meant))}.`;
}

/**
 * The path that a client probably meant: corrects a missing or doubled `/v1`, a foreign prefix and extra
 * slashes. Undefined when the path ends like no endpoint.
 */
function findMeantPath(path: string): string | undefined {
  const tidy = path.replaceAll(/\/{2,}/g, '/').replace(/\/$/, '');
  const model = /^(?:\/v1)*\/models\/(.+)$/.exec(tidy)?.[1];
  if (model !== undefined) return modelPrefix + model;
  const stored = responsesRoute.path + (/^(?:\/v1)*\/responses(\/.+)$/.exec(tidy)?.[1] ?? '');
  if (stored !== responsesRoute.path && findStoredRoutes(stored).length > 0) return stored;
  return routes.find((route) => route.path !== '/' && tidy.endsWith(cutBase(route.path)))?.path;
}

const shorten = (text: string): string => (text.length > 120 ? `${text.slice(0, 120)}...` : text);
