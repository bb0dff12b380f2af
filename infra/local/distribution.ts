/**
 * Stands in for CloudFront: the path patterns of the template, the headers of its edge function, one port for
 * clients.
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { StartError } from './host/messages.ts';
import type { OriginAnswer, FunctionUrl } from './lambda/function-url.ts';
import { closeServer, listenOnLoopback, ofConnection } from './host/loopback.ts';
import { compilePattern } from '../stack/constructs/function-descriptions.ts';
import { createServer } from '../../shared/adapters/system/node-http.ts';

/** The origin that receives the requests of one behaviour. */
interface Origin {
  domain: string;
  pathPrefix: string;
  headers: Record<string, string>;
  /** Longest pause before the first byte and between bytes. */
  readTimeoutMs: number;
}

interface Behaviour {
  matches(path: string): boolean;
  methods: ReadonlySet<string>;
  origin: Origin;
}

interface BehaviourProperties {
  PathPattern?: string;
  TargetOriginId: string;
  AllowedMethods?: string[];
}

interface OriginProperties {
  Id: string;
  DomainName: string;
  OriginPath?: string;
  OriginCustomHeaders?: { HeaderName: string; HeaderValue: string }[];
  CustomOriginConfig?: { OriginReadTimeout?: number };
}

/** The emulated parts of a distribution's resolved configuration. */
export interface DistributionConfig {
  Origins: OriginProperties[];
  CacheBehaviors?: BehaviourProperties[];
  DefaultCacheBehavior: BehaviourProperties;
}

const cloudFrontReadTimeoutSeconds = 30;

/** Returns the behaviours in matching order; the last one matches every path. */
export function readBehaviours(config: DistributionConfig): Behaviour[] {
  const origins = new Map(config.Origins.map((origin) => [origin.Id, readOrigin(origin)]));
  const read = (properties: BehaviourProperties, pattern: string): Behaviour => {
    const origin = origins.get(properties.TargetOriginId);
    if (origin === undefined)
      throw new StartError(`a behaviour names the unknown origin ${properties.TargetOriginId}`);
    const expression = compilePattern(pattern);
    return {
      matches: (path) => expression.test(path),
      methods: new Set(properties.AllowedMethods ?? ['GET', 'HEAD']),
      origin,
    };
  };
  const named = (config.CacheBehaviors ?? []).map((properties) =>
    read(properties, properties.PathPattern ?? '*'),
  );
  return [...named, read(config.DefaultCacheBehavior, '*')];
}

function readOrigin(properties: OriginProperties): Origin {
  const readTimeout = properties.CustomOriginConfig?.OriginReadTimeout ?? cloudFrontReadTimeoutSeconds;
  return {
    domain: properties.DomainName,
    pathPrefix: properties.OriginPath ?? '',
    headers: Object.fromEntries(
      (properties.OriginCustomHeaders ?? []).map((header) => [
        header.HeaderName.toLowerCase(),
        header.HeaderValue,
      ]),
    ),
    readTimeoutMs: readTimeout * 1000,
  };
}

const timeoutPage: OriginAnswer = {
  status: 504,
  headers: { 'content-type': 'text/html', 'x-cache': 'Error from cloudfront' },
  body: `<!DOCTYPE html><html><head><title>504 Gateway Timeout</title></head>
<body><h1>504 Gateway Timeout ERROR</h1><p>The request could not be satisfied.</p><p>The function said nothing
for too long.</p></body></html>
`,
};

interface Sending {
  answering: Promise<OriginAnswer>;
  readTimeoutMs: number;
  /** In place of an answer that does not begin in time. */
  timedOut: OriginAnswer;
}

/** Sends an answer with the front door's time-out: 504 before the first byte, a cut connection later. */
export async function send(
  request: IncomingMessage,
  response: ServerResponse,
  { answering, readTimeoutMs, timedOut }: Sending,
): Promise<void> {
  let silence: NodeJS.Timeout | undefined;
  const timeOut = (): void => {
    if (response.headersSent) return void response.destroy();
    response.writeHead(timedOut.status, timedOut.headers).end(timedOut.body);
  };
  const watch = (): void => {
    clearTimeout(silence);
    // While the viewer is slow, a pause does not count against the origin.
    silence = setTimeout(() => (response.writableNeedDrain ? watch() : timeOut()), readTimeoutMs);
  };
  request.once('end', () => response.destroyed || watch());
  response.on('error', () => {}).once('close', () => clearTimeout(silence));
  const { status, headers, body } = await answering;
  const isGone = response.headersSent || response.destroyed;
  if (body instanceof Readable) {
    if (isGone) return void body.destroy();
    response.writeHead(status, headers).flushHeaders();
    body.on('data', watch);
    watch();
    // A body that breaks off cuts the connection; a viewer that leaves destroys the body.
    await pipeline(body, response).catch(() => {});
  } else if (!isGone) response.writeHead(status, headers).end(body);
}

const methodPage = `<!DOCTYPE html><html><head><title>403 ERROR</title></head><body><h1>403 ERROR</h1>
<p>This distribution does not allow the HTTP request method that was used for this request.</p></body></html>
`;

export type Serve = (request: IncomingMessage, response: ServerResponse) => void;

interface LocalFrontDoor {
  /** Resolves with the port; rejects when it is in use. */
  listen(port: number): Promise<number>;
  /** Starts serving. */
  open(serve: Serve): void;
  close(): Promise<void>;
}

/** The one port that clients call. Answers 503 until `open` is called. */
export function createFrontDoor(): LocalFrontDoor {
  let serve = distributionOf([], new Map());
  const server = createServer((request, response) => serve(request, response));
  // Longer than clients keep idle connections, so that no request is sent on a closing connection.
  server.keepAliveTimeout = 75_000;
  // A client that ends its side after the request still reads the answer. Node has the switch, but no type for it.
  Object.assign(server, { httpAllowHalfOpen: true });
  return {
    listen: (port) => listenOnLoopback(server, port),
    open: (given) => void (serve = given),
    close: () => closeServer(server),
  };
}

/** Emulates CloudFront. `urls` maps host names to Function URLs and what else is an origin. */
export const distributionOf =
  (behaviours: Behaviour[], urls: ReadonlyMap<string, FunctionUrl>): Serve =>
  (request, response) => {
    const refuse = (status: number, page: string) => {
      request.resume();
      response.writeHead(status, { 'content-type': 'text/html' }).end(page);
    };
    const target = request.url ?? '/';
    const path = target.split('?')[0] ?? '/';
    const behaviour = behaviours.find((candidate) => candidate.matches(path));
    const url = behaviour && urls.get(behaviour.origin.domain);
    if (behaviour === undefined || url === undefined) return refuse(503, 'The stack is starting.\n');
    if (!behaviour.methods.has(request.method ?? 'GET')) return refuse(403, methodPage);
    const { origin } = behaviour;
    const headers = buildOriginHeaders(request, origin);
    const answering = url(request, { target: origin.pathPrefix + target, headers });
    void send(request, response, { answering, readTimeoutMs: origin.readTimeoutMs, timedOut: timeoutPage });
  };

/** The headers for the origin. Like the edge function, moves the viewer's host to `x-forwarded-host`. */
function buildOriginHeaders(
  { headers, headersDistinct }: IncomingMessage,
  origin: Origin,
): IncomingHttpHeaders {
  const kept = Object.entries(headers).filter(([name]) => !ofConnection.test(name));
  const { host } = headers;
  const { authorization } = headersDistinct;
  return {
    ...Object.fromEntries(kept),
    // Node keeps the first alone. Two are two keys, which the relay refuses.
    ...(authorization && { authorization: authorization.join(', ') }),
    ...(host !== undefined && { 'x-forwarded-host': host }),
    via: '1.1 local.cloudfront.net (CloudFront)',
    ...origin.headers,
  };
}
