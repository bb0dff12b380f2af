/** Handles cross-origin requests of browsers. Must never allow credentials. */
import type { Handle, RelayRequest, RelayResponse } from './http.ts';
import type { ConfigSource } from '../ports/config-store.ts';

/**
 * Allows the origins in the setting `cors_origins`: exact origins, or `*`. Empty: adds no header and does not
 * handle OPTIONS specially.
 */
export function withCors(handle: Handle, config: ConfigSource): Handle {
  return async (request) => {
    if (isPreflight(request)) {
      const origins = await originsOf(config);
      const allowed = allowedOrigin(origins, request);
      if (allowed !== undefined) return preflightAnswer(request, allowed);
      return withVary(await handle(request), origins);
    }
    // Concurrent, so that reading the settings does not delay the request, whose pipeline reads them as well.
    const [response, origins] = await Promise.all([handle(request), originsOf(config)]);
    const allowed = allowedOrigin(origins, request);
    if (allowed === undefined) return withVary(response, origins);
    return withVary(
      { ...response, headers: { ...response.headers, ...readable(response, allowed) } },
      origins,
    );
  };
}

const isPreflight = (request: RelayRequest): boolean =>
  request.method === 'OPTIONS' && request.headers['access-control-request-method'] !== undefined;

/** Returns no origins when the settings cannot be read; the handle itself reports the store's failure. */
async function originsOf(config: ConfigSource): Promise<string[]> {
  try {
    return (await config.current()).settings.corsOrigins;
  } catch {
    return [];
  }
}

function allowedOrigin(origins: string[], request: RelayRequest): string | undefined {
  const origin = request.headers['origin'];
  if (origin === undefined) return undefined;
  if (origins.includes('*')) return '*';
  return origins.includes(origin) ? origin : undefined;
}

const readable = (response: RelayResponse, allowed: string): Record<string, string> => ({
  'access-control-allow-origin': allowed,
  'access-control-expose-headers': [
    'x-request-id',
    'retry-after',
    'x-should-retry',
    ...Object.keys(response.headers).filter((name) => name.startsWith('x-relay-')),
  ].join(', '),
});

/** Prevents caches from serving one origin's response to another origin. */
function withVary(response: RelayResponse, origins: string[]): RelayResponse {
  if (origins.length === 0) return response;
  const before = response.headers['vary'];
  const vary = before === undefined ? 'origin' : `${before}, origin`;
  return { ...response, headers: { ...response.headers, vary } };
}

/**
 * Allows the requested headers: SDKs send many of their own (`x-stainless-*`), and `*` does not cover
 * `authorization`.
 */
function preflightAnswer(request: RelayRequest, allowed: string): RelayResponse {
  const asked = request.headers['access-control-request-headers'] ?? '';
  const allowHeaders = /^[\w\-, ]{1,2000}$/.test(asked) ? asked : 'authorization, content-type';
  return {
    status: 204,
    headers: {
      'access-control-allow-origin': allowed,
      'access-control-allow-methods': 'GET, HEAD, POST, DELETE',
      'access-control-allow-headers': allowHeaders,
      'access-control-max-age': '600',
      vary: 'origin, access-control-request-headers',
      'x-request-id': request.id,
    },
    body: '',
    done: Promise.resolve(),
  };
}
