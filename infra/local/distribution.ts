import {
  type OutgoingHttpHeaders,
  type ServerResponse,
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
} from 'node:http';
import { StartError } from './host/messages.ts';
import type { UrlReply, FunctionUrl } from './lambda/function-url.ts';
import { closeServer, listenOnLoopback } from './host/loopback.ts';
import { patternExpression } from '../stack/constructs/function-descriptions.ts';

/** The origin that receives the requests of one behaviour. */
interface Origin {
  domain: string;
  pathPrefix: string;
  headers: Record<string, string>;
  timeouts: OriginTimeouts;
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
  ResponseCompletionTimeout?: number;
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
    const expression = patternExpression(pattern);
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
  const completion = properties.ResponseCompletionTimeout;
  return {
    domain: properties.DomainName,
    pathPrefix: properties.OriginPath ?? '',
    headers: Object.fromEntries(
      (properties.OriginCustomHeaders ?? []).map((header) => [
        header.HeaderName.toLowerCase(),
        header.HeaderValue,
      ]),
    ),
    timeouts: {
      readTimeoutMs: readTimeout * 1000,
      ...(completion !== undefined && { completionTimeoutMs: completion * 1000 }),
    },
  };
}

// Emulates how CloudFront sends an answer, including its time-outs: 504 before the first byte, a cut
// connection later.

/** Time limits of CloudFront for an origin. */
export interface OriginTimeouts {
  /** Longest pause before the first byte and between bytes. */
  readTimeoutMs: number;
  /** From the request to the last byte. */
  completionTimeoutMs?: number;
}

const timeoutPage = `<!DOCTYPE html><html><head><title>504 Gateway Timeout</title></head>
<body><h1>504 Gateway Timeout ERROR</h1><p>The request could not be satisfied.</p><p>The function said nothing
for too long.</p></body></html>
`;

/** The answer to the viewer. Drops all writes after the viewer has disconnected or CloudFront timed out. */
class ViewerReply implements UrlReply {
  readonly #response: ServerResponse;
  readonly #timeouts: OriginTimeouts;
  #silence: NodeJS.Timeout | undefined;
  #completion: NodeJS.Timeout | undefined;
  #ended = false;

  constructor(response: ServerResponse, timeouts: OriginTimeouts) {
    this.#response = response;
    this.#timeouts = timeouts;
    response.on('error', () => {});
    response.once('close', () => this.#finish());
  }

  /** True when the viewer no longer reads. */
  get gone(): boolean {
    return this.#ended || this.#response.destroyed;
  }

  get begun(): boolean {
    return this.#response.headersSent;
  }

  startWaiting(): void {
    if (this.gone) return;
    this.#watchSilence();
    const { completionTimeoutMs } = this.#timeouts;
    if (completionTimeoutMs !== undefined)
      this.#completion = setTimeout(() => this.#timeOut(), completionTimeoutMs);
  }

  begin(status: number, headers: OutgoingHttpHeaders): void {
    if (this.gone || this.begun) return;
    this.#response.writeHead(status, headers);
    this.#response.flushHeaders();
    this.#watchSilence();
  }

  write(bytes: Uint8Array): boolean {
    if (this.gone || bytes.length === 0) return true;
    const room = this.#response.write(bytes);
    // While the viewer is slow, a pause does not count against the origin.
    if (room) this.#watchSilence();
    else clearTimeout(this.#silence);
    return room;
  }

  whenWritable(callback: () => void): void {
    if (this.gone) return callback();
    const once = () => {
      this.#response.off('drain', once).off('close', once);
      if (!this.gone) this.#watchSilence();
      callback();
    };
    this.#response.on('drain', once).on('close', once);
  }

  end(bytes?: Uint8Array): void {
    if (this.gone) return;
    this.#finish();
    this.#response.end(bytes);
  }

  abort(): void {
    this.#finish();
    this.#response.destroy();
  }

  #watchSilence(): void {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => this.#timeOut(), this.#timeouts.readTimeoutMs);
  }

  #timeOut(): void {
    if (this.begun) return this.abort();
    this.#response.writeHead(504, { 'content-type': 'text/html', 'x-cache': 'Error from cloudfront' });
    this.end(Buffer.from(timeoutPage));
  }

  #finish(): void {
    this.#ended = true;
    clearTimeout(this.#silence);
    clearTimeout(this.#completion);
  }
}

// Hop-by-hop headers, which apply only to the viewer's connection.
const viewerOnly = new Set([
  'connection',
  'expect',
  'host',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

const methodPage = `<!DOCTYPE html><html><head><title>403 ERROR</title></head><body><h1>403 ERROR</h1>
<p>This distribution does not allow the HTTP request method that was used for this request.</p></body></html>
`;

interface LocalDistribution {
  /** Resolves with the port; rejects when it is in use. */
  listen(port: number): Promise<number>;
  /** Starts serving. `urls` maps host names to Function URLs. */
  open(behaviours: Behaviour[], urls: ReadonlyMap<string, FunctionUrl>): void;
  close(): Promise<void>;
}

/** Emulates CloudFront on one port. Answers 503 until `open` is called. */
export function createDistribution(): LocalDistribution {
  let serve = serveBy([], new Map());
  const server = createServer((request, response) => serve(request, response));
  // Longer than clients keep idle connections, so that no request is sent on a closing connection.
  server.keepAliveTimeout = 75_000;
  // A client that ends its side after the request still reads the answer. Node has the switch, but no type for it.
  Object.assign(server, { httpAllowHalfOpen: true });
  server.on('clientError', (_, socket) => {
    if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n');
  });
  return {
    listen: (port) => listenOnLoopback(server, port),
    open(behaviours, urls) {
      serve = serveBy(behaviours, urls);
    },
    close: () => closeServer(server),
  };
}

const serveBy =
  (behaviours: Behaviour[], urls: ReadonlyMap<string, FunctionUrl>) =>
  (request: IncomingMessage, response: ServerResponse): void => {
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
    url(request, {
      target: origin.pathPrefix + target,
      headers: originHeaders(request, origin),
      reply: new ViewerReply(response, origin.timeouts),
    });
  };

/** The headers for the origin. Like the edge function, moves the viewer's host to `x-forwarded-host`. */
function originHeaders({ headers, headersDistinct }: IncomingMessage, origin: Origin): IncomingHttpHeaders {
  const kept = Object.entries(headers).filter(([name]) => !viewerOnly.has(name));
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
