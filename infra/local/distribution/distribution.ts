import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { closeServer, listenOnLoopback } from '../host/free-port.ts';
import type { FunctionUrl } from '../lambda/function-url.ts';
import type { Behaviour, Origin } from './behaviours.ts';
import { ViewerReply } from './viewer-reply.ts';

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

export interface LocalDistribution {
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
