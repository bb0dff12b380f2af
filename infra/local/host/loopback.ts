/**
 * HTTP servers of the local stack that programs call and no page may. Pages of all sites can send requests to loopback, and
 * one whose name its owner points to 127.0.0.1 can read the answers too. Must never answer a browser, nor a name that is not
 * this machine's. `Sec-Fetch-Mode` is no sign of a browser: Node's fetch sends it.
 */
import type { Agent as HttpAgent, IncomingMessage, RequestOptions, Server, ServerResponse } from 'node:http';
import { once } from 'node:events';
import { createServer as netCreateServer, type AddressInfo, type Server as NetServer } from 'node:net';
import { StartError } from './messages.ts';
import { Agent, createServer, request as sendRequest } from '../../../shared/adapters/system/node-http.ts';

/** Also behind a tunnel, which may have another port. */
const ownName = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i;

const refusal = JSON.stringify({
  __type: 'AccessDeniedException',
  message:
    'This port is for programs on this machine. Pages in a browser, and other host names, are refused.',
});

function isForPrograms({ headers: { origin, host = '', ...others } }: IncomingMessage): boolean {
  return origin === undefined && others['sec-fetch-site'] === undefined && ownName.test(host);
}

/** @param answer where it fails, the connection is broken */
export const createProgramServer = (
  answer: (request: IncomingMessage, response: ServerResponse) => void | Promise<void>,
): Server =>
  createServer((request, response) => {
    const answerProgram = async (): Promise<void> => {
      if (isForPrograms(request)) return answer(request, response);
      request.resume();
      response.writeHead(403, { 'content-type': 'application/x-amz-json-1.0' }).end(refusal);
      return undefined;
    };
    void answerProgram().catch(() => response.destroy());
  });

/**
 * The whole body, or undefined as soon as it is too large; the rest is then dropped. Stays open when the client leaves before
 * its end.
 */
export function readBody(request: IncomingMessage, bytesMax: number): Promise<Buffer | undefined> {
  const pieces: Buffer[] = [];
  let size = 0;
  request.on('error', () => {});
  return new Promise((resolve) => {
    request.on('data', (bytes: Buffer) => {
      size += bytes.length;
      if (size <= bytesMax) pieces.push(bytes);
      else resolve(undefined);
    });
    request.once('end', () => resolve(Buffer.concat(pieces)));
  });
}

export interface TablesPort {
  /** Resolves with the port; rejects when it is in use. */
  listen(port: number): Promise<number>;
  /** Passes requests to the emulator from then on; before, they are refused with 503. */
  open(emulator: string): void;
  close(): Promise<void>;
}

/** In front of the emulator, which answers every page and every name. */
export function createTablesPort(): TablesPort {
  let emulator: URL | undefined;
  const agent = new Agent({ keepAlive: true });
  const server = createProgramServer((request, response) => {
    if (emulator) return passOn(request, response, { emulator, agent });
    request.resume();
    return answerUnavailable(response);
  });
  // Longer than SDKs keep idle connections.
  server.keepAliveTimeout = 75_000;
  return {
    listen: (port) => listenOnLoopback(server, port),
    open: (address) => void (emulator = new URL(address)),
    async close() {
      agent.destroy();
      await closeServer(server);
    },
  };
}

async function passOn(
  request: IncomingMessage,
  response: ServerResponse,
  { emulator: { hostname, port, host }, agent }: { emulator: URL; agent: HttpAgent },
): Promise<void> {
  const headers = { ...request.headers, host };
  const to = { hostname, port, path: request.url, headers, agent };
  const answer = await forwardRequest(request, to).catch(() => undefined);
  if (!answer) return answerUnavailable(response);
  const kept = Object.entries(answer.headers).filter(([name]) => !name.startsWith('access-control-'));
  response.writeHead(answer.statusCode ?? 502, Object.fromEntries(kept));
  answer.on('error', () => response.destroy()).pipe(response);
}

/** Headers that apply to one connection only, and the name of the host behind it. */
export const ofConnection =
  /^(connection|expect|host|keep-alive|proxy-(authenticate|authorization|connection)|te|trailer|transfer-encoding|upgrade)$/i;

/** Sends a request on, as long as its client is there. Resolves when the answer begins; rejects where there is none. */
export async function forwardRequest(request: IncomingMessage, to: RequestOptions): Promise<IncomingMessage> {
  const { method = 'GET', socket } = request;
  const sent = sendRequest({ ...to, method });
  const leave = (): void => void sent.destroy();
  socket.once('close', leave);
  sent
    .on('error', () => {})
    .once('close', () => {
      socket.off('close', leave);
      // An answer may come before the end of the body, whose client may read none before it has sent all.
      request.unpipe(sent).resume();
    });
  request.pipe(sent);
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  // It may come before all of the body is sent, whose client may read no answer before that.
  answer.once('close', () => sent.writableFinished || sent.destroy());
  return answer;
}

/** Tools repeat a call that gets this. */
const answerUnavailable = (response: ServerResponse): void =>
  void response
    .writeHead(503, { 'content-type': 'application/x-amz-json-1.0' })
    .end(JSON.stringify({ __type: 'com.amazonaws.dynamodb.v20120810#InternalServerError' }));

export interface Listening {
  /** `http://127.0.0.1:PORT` */
  endpoint: string;
  close: (this: void) => Promise<void>;
}

export async function listenOnFreePort(server: Server): Promise<Listening> {
  const port = await listenOnLoopback(server, 0);
  return { endpoint: `http://127.0.0.1:${port}`, close: () => closeServer(server) };
}

/** Listens on loopback and resolves with the port; 0 picks a free one. Rejects with EADDRINUSE. */
export async function listenOnLoopback(server: NetServer, port: number, host = '127.0.0.1'): Promise<number> {
  server.listen(port, host);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Closes the server and its open connections. */
export async function closeServer(server: Server): Promise<void> {
  if (!server.listening) return;
  server.close();
  server.closeAllConnections();
  await once(server, 'close');
}

/** Resolves with any port that is free at an address of this machine. Rejects with EADDRNOTAVAIL. */
export async function findFreePort(host: string): Promise<number> {
  const server = netCreateServer();
  const free = await listenOnLoopback(server, 0, host);
  server.close();
  await once(server, 'close');
  return free;
}

type Claim = readonly [variable: string, port: number, server: { listen(port: number): Promise<number> }];

/** Resolves with the ports. Throws StartError for all that are in use, with the variables for choosing others. */
export async function claimPorts(claims: readonly Claim[]): Promise<number[]> {
  const ports: number[] = [];
  const taken: Claim[] = [];
  for (const claim of claims)
    try {
      ports.push(await claim[2].listen(claim[1]));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
      taken.push(claim);
    }
  if (taken.length === 0) return ports;
  const named = taken.map(([variable, port]) => `${port} (${variable})`).join(' and ');
  const others = taken.map(([variable, port], index) => `${variable}=${port + 1 + index}`).join(' ');
  throw new StartError(`port ${named} ${taken.length === 1 ? 'is' : 'are'} in use; try: ${others} npm start`);
}
