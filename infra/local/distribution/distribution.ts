import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { listenOnLoopback } from '../host/free-port.ts';
import type { FunctionUrl } from '../lambda/function-url.ts';
import type { Behaviour, Origin } from './behaviours.ts';
import { ViewerReply } from './viewer-reply.ts';

// Hop-by-hop headers: they are about the viewer's own connection.
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

/** CloudFront on one port. It answers 503 until `open` gives it behaviours. */
export class LocalDistribution {
  readonly server: Server;
  #behaviours: Behaviour[] = [];
  #urls: ReadonlyMap<string, FunctionUrl> = new Map();

  constructor() {
    this.server = createServer((request, response) => this.#serve(request, response));
    // Longer than clients keep idle connections, so that no request meets a closing one.
    this.server.keepAliveTimeout = 75_000;
    this.server.on('clientError', (_, socket) => {
      if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n');
    });
  }

  /** `urls`: the Function URLs by their host names. */
  open(behaviours: Behaviour[], urls: ReadonlyMap<string, FunctionUrl>): void {
    this.#behaviours = behaviours;
    this.#urls = urls;
  }

  /** Resolves with the port; rejects when it is in use. */
  listen(port: number): Promise<number> {
    return listenOnLoopback(this.server, port);
  }

  async close(): Promise<void> {
    if (!this.server.listening) return;
    this.server.close();
    this.server.closeAllConnections();
    await once(this.server, 'close');
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const target = request.url ?? '/';
    const path = target.split('?')[0] ?? '/';
    const behaviour = this.#behaviours.find((candidate) => candidate.matches(path));
    const url = behaviour && this.#urls.get(behaviour.origin.domain);
    const refuse = (status: number, page: string) => {
      request.resume();
      response.writeHead(status, { 'content-type': 'text/html' }).end(page);
    };
    if (behaviour === undefined || url === undefined) return refuse(503, 'The stack is starting.\n');
    if (!behaviour.methods.has(request.method ?? 'GET')) return refuse(403, methodPage);
    const { origin } = behaviour;
    url.serve(request, {
      target: origin.pathPrefix + target,
      headers: originHeaders(request.headers, origin),
      reply: new ViewerReply(response, origin.timeouts),
    });
  }
}

/** The headers that the origin gets: the viewer's without its host, which the edge function keeps in another header. */
function originHeaders(viewer: IncomingHttpHeaders, origin: Origin): IncomingHttpHeaders {
  const kept = Object.entries(viewer).filter(([name]) => !viewerOnly.has(name));
  const { host } = viewer;
  return {
    ...Object.fromEntries(kept),
    ...(host !== undefined && { 'x-forwarded-host': host }),
    via: '1.1 local.cloudfront.net (CloudFront)',
    ...origin.headers,
  };
}
