/** Host-neutral HTTP: the request that `http-entry` passes to the relay, and the response. */
import type { Clock, Ids } from '../ports/host.ts';
import type { Log } from '../ports/telemetry.ts';
import { compactRoute, countingRoutes, endpointRoutes } from '../../endpoints/routes.ts';
import type { ConfigSource } from '../ports/config-store.ts';

/** Room in the memory of a host that serves many requests at once. */
export interface MemoryRoom {
  /** False when there is none; nothing was taken then. */
  take(bytes: number): boolean;
  give(bytes: number): void;
}

export interface BodyReading {
  /** How many values it may have. */
  valuesMax?: number | undefined;
  /**
   * Awaited once, before a body above `smallSize` is unpacked or parsed. If it throws, the body is refused with that error. If it
   * is missing, a body of any size is read at once.
   */
  large?: (() => Promise<void>) | undefined;
  /** Told how long it is, unpacked, and how many values it has, before it is parsed. May throw. */
  counted?: ((length: number, values: number) => void) | undefined;
}

/** Bodies up to this size are read for anybody with a key: 2 ms of processor to parse, 10 ms to check the values. */
export const smallSize = { bytes: 256 * 1024, values: 2_000 };

export interface RelayRequest {
  id: string;
  method: string;
  /** Decoded path without query, e.g. `/v1/chat/completions`. */
  path: string;
  query: URLSearchParams;
  /** Names in lower case. */
  headers: Record<string, string | undefined>;
  /** The public base address including `/v1`, for messages. */
  baseUrl: string;
  /** Reads the JSON body; the same each time. Rejects with a Refusal (400, 413, 415, 503). Called only after the key check. */
  json(reading?: BodyReading): Promise<unknown>;
  /** The value of the header that tells upstreams which relays the call passed, this one last. */
  hops?: string;
  /** The body as it came, of any size, for signatures over its bytes: once, and instead of `json`. */
  rawBody(): string | Uint8Array;
  /** When the host will end the invocation, in epoch milliseconds. */
  hostDeadlineMs: number;
  /** Aborts when the host has to end before: the call then ends as at its deadline. */
  hostEnds?: AbortSignal | undefined;
  /** For what the request holds beside its body; what it has not given back is free at its end. */
  room?: MemoryRoom | undefined;
}

export interface RelayResponse {
  status: number;
  headers: Record<string, string>;
  /**
   * Text, or a stream of text, to be read as fast as the connection takes it. Failures are rendered in the protocol;
   * where that is impossible the stream throws, and the host breaks the connection.
   */
  body: string | AsyncIterable<string>;
  /** True if nothing follows the text that was read last, so a host can send it together with the end. */
  endsHere?: () => boolean;
  /**
   * Resolves when the host must break the connection at once, also while it waits for the connection to take something:
   * a client that takes nothing never sees what the stream throws. Never rejects; absent: never.
   */
  cut?: Promise<AnswerCut>;
  /**
   * A host that learns when its connection has closed gives that here before it reads the body: buffers behind it may hold
   * the end of an answer for a client that takes nothing. A host that does not is taken to have handed on what it read.
   */
  closes?: (closed: Promise<void>) => void;
  /** Resolves when all work inside the invocation has finished: reading to the end, settling, logging. */
  done: Promise<void>;
}

/** Handles requests of one endpoint group. Never rejects: every error becomes a response. */
export type Handle = (request: RelayRequest) => Promise<RelayResponse>;

/** A handle with everything that a host needs to serve it; created by `functions/compose`. */
export interface HostedHandle {
  handle: Handle;
  /** Does in advance what the first request would wait for. Never rejects. */
  prepare?: () => Promise<void>;
  clock: Clock;
  ids: Ids;
  log: Log;
  /** Accepted values of `x-relay-origin`; an empty list refuses every request. */
  originSecrets: readonly string[];
  /** true on the local stack: the public address is http there. */
  local: boolean;
}

/**
 * The client has a part of the answer, and the protocol can't report an error any more. Every host must break the connection and
 * never end it cleanly.
 */
export class AnswerCut extends Error {
  override readonly name = 'AnswerCut';
  constructor() {
    super('the connection was broken before the answer was whole');
  }
}

/** The headers of a key's limit a minute, under OpenAI's names. */
export const rateHeaders = (rpm: number, remaining: number, nowMs: number): Record<string, string> => ({
  'x-ratelimit-limit-requests': String(rpm),
  'x-ratelimit-remaining-requests': String(remaining),
  'x-ratelimit-reset-requests': `${secondsOfMinuteLeft(nowMs)}s`,
});

/** Headers that name for whom a call is: tags, and what Claude Code sends. */
export const tagsHeader = 'x-relay-tags';
export const claudeCodePrefix = 'x-claude-code-';

export const secondsOfMinuteLeft = (nowMs: number): number => Math.ceil((60_000 - (nowMs % 60_000)) / 1000);

// The paths that are served, but for those of stored responses.

/** For any other path or method, the function that receives the request responds with 404 or 405. */
export const routes = [
  ...Object.values(endpointRoutes),
  ...Object.values(countingRoutes),
  compactRoute,
  { name: 'models', method: 'GET', path: '/v1/models' },
  { name: 'charge', method: 'GET', path: '/v1/charge' },
  { name: 'plans', method: 'GET', path: '/v1/plans' },
  { name: 'openapi', method: 'GET', path: '/v1/openapi.json' },
  { name: 'account', method: 'GET', path: '/v1/account' },
  { name: 'usage', method: 'GET', path: '/v1/account/usage' },
  { name: 'statement', method: 'GET', path: '/v1/account/statement' },
  // Claude Code reads its usage limits here.
  { name: 'oauth_usage', method: 'GET', path: '/api/oauth/usage' },
  { name: 'health', method: 'GET', path: '/health' },
  { name: 'page', method: 'GET', path: '/' },
  { name: 'account_page', method: 'GET', path: '/account' },
] as const;

/** The path of one model is this prefix and the model's id, which may contain slashes. */
export const modelPrefix = '/v1/models/';
export const modelRoute = { name: 'model', method: 'GET', path: '/v1/models/{id}' } as const;

/** The path of one stored response is this prefix, its id, and what is done with it. */
export const responsesPrefix = `${endpointRoutes.responses.path}/`;

/** Files of the pages. */
const assetPrefix = '/assets/';
export const assetRoute = { name: 'asset', method: 'GET', path: '/assets/{name}' } as const;

type Route = (typeof routes)[number] | typeof modelRoute | typeof assetRoute;
export type RouteName = Route['name'];

/**
 * The endpoint for a path and method; HEAD counts as GET. Undefined: none; the caller throws `refuseRoute`.
 */
export const matchRoute = (request: RelayRequest): RouteName | undefined =>
  findRoutes(request.path).find((route) => methodsOf(route).includes(request.method))?.name;

const accountRoutes = ['account', 'usage', 'statement', 'oauth_usage'] as const;
/** Paths on which a key reads its own account. */
export const isAccountRoute = (route: RouteName | undefined): route is (typeof accountRoutes)[number] =>
  accountRoutes.some((name) => name === route);

/** The id in `/v1/models/{id}`: the decoded rest of the path. */
export const modelIdOf = (request: RelayRequest): string => request.path.slice(modelPrefix.length);

/** The routes of a path: several if it takes several methods. */
export function findRoutes(path: string): Route[] {
  if (path.startsWith(modelPrefix) && path.length > modelPrefix.length) return [modelRoute];
  if (path.startsWith(assetPrefix) && path.length > assetPrefix.length) return [assetRoute];
  return routes.filter((route) => route.path === path);
}

export const methodsOf = ({ method }: { method: string }): string[] =>
  method === 'GET' ? ['GET', 'HEAD'] : [method];

// Handles cross-origin requests of browsers. Must never allow credentials.

/**
 * Allows the origins in the setting `cors_origins`: exact origins, or `*`. Empty: adds no header and does not
 * handle OPTIONS specially.
 */
export function addCors(handle: Handle, config: ConfigSource): Handle {
  return async (request) => {
    if (isPreflight(request)) {
      const origins = await originsOf(config);
      const allowed = findAllowedOrigin(origins, request);
      if (allowed !== undefined) return answerPreflight(request, allowed);
      return addVary(await handle(request), origins);
    }
    // Concurrent, so that reading the settings does not delay the request, whose pipeline reads them as well.
    const [response, origins] = await Promise.all([handle(request), originsOf(config)]);
    const allowed = findAllowedOrigin(origins, request);
    if (allowed === undefined) return addVary(response, origins);
    return addVary(
      { ...response, headers: { ...response.headers, ...exposeHeaders(response, allowed) } },
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

function findAllowedOrigin(origins: string[], request: RelayRequest): string | undefined {
  const origin = request.headers['origin'];
  if (origin === undefined) return undefined;
  if (origins.includes('*')) return '*';
  return origins.includes(origin) ? origin : undefined;
}

const exposeHeaders = (response: RelayResponse, allowed: string): Record<string, string> => ({
  'access-control-allow-origin': allowed,
  'access-control-expose-headers': [
    'x-request-id',
    'retry-after',
    'x-should-retry',
    ...Object.keys(response.headers).filter((name) => name.startsWith('x-relay-')),
  ].join(', '),
});

/** Prevents caches from serving one origin's response to another origin. */
function addVary(response: RelayResponse, origins: string[]): RelayResponse {
  if (origins.length === 0) return response;
  const before = response.headers['vary'];
  const vary = before === undefined ? 'origin' : `${before}, origin`;
  return { ...response, headers: { ...response.headers, vary } };
}

/**
 * Allows the requested headers: SDKs send many of their own (`x-stainless-*`), and `*` does not cover
 * `authorization`.
 */
function answerPreflight(request: RelayRequest, allowed: string): RelayResponse {
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
