/**
 * The console on this machine: listens on loopback, gives one browser a session, and ends when idle. Must never listen on
 * another address, and must tell a client without a session nothing.
 */
import { hash } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { usageFailure } from '../../../shared/operate/plan.ts';
import type { OperatorPorts } from '../../../shared/operate/operator-ports.ts';
import { createConsole, type ConsoleHandle } from './console.ts';
import { readCookie, guardHeaders, isSame, answerPlain } from './guard.ts';
import type { Identity } from './visit/visit.ts';
import { createServer } from '../../../shared/adapters/system/node-http.ts';

export interface ServeOptions {
  readOnly: boolean;
  /** 0 takes a free port. */
  port: number;
  where: string;
  name: string;
  onFault: (error: unknown, path: string) => void;
}

export interface ServedConsole {
  /** The address with the token that works once, within a minute. */
  address: string;
  /** Resolves when nobody opened it in time, after 30 idle minutes, or when it was stopped. */
  ended: Promise<void>;
  stop: () => void;
}

const checkEveryMs = 5_000;
const connectionsMax = 256;

/** Throws a Failure when the port is not available. */
export async function serveConsole(ports: OperatorPorts, options: ServeOptions): Promise<ServedConsole> {
  const role = options.readOnly ? 'viewer' : 'operator';
  const session = new Session(ports, { name: options.name, role });
  // The handler needs the port, and no request arrives before the server listens.
  let listener: ReturnType<typeof createListener> | undefined;
  const server = createServer((request, response) => listener?.(request, response));
  server.maxConnections = connectionsMax;
  server.headersTimeout = 10_000;
  server.requestTimeout = 30_000;
  await startListening(server, options.port);
  const { port } = server.address() as AddressInfo;
  listener = createListener(ports, session, { ...options, port });
  const watch = setInterval(() => {
    if (session.isOver()) stop();
  }, checkEveryMs);
  const ended = once(server, 'close').then(() => undefined);
  const stop = (): void => {
    clearInterval(watch);
    server.close();
    server.closeAllConnections();
  };
  return { address: `http://127.0.0.1:${port}/enter?token=${session.token}`, ended, stop };
}

/** Answers the requests of a loopback server for one session. */
export function createListener(
  ports: OperatorPorts,
  session: Session,
  { port, where, onFault }: Pick<ServeOptions, 'port' | 'where' | 'onFault'>,
) {
  const hosts = [`127.0.0.1:${port}`, `localhost:${port}`];
  const handle = createConsole({ ports, onFault, options: { hosts, base: session.base, where } });
  return (request: IncomingMessage, response: ServerResponse): void => {
    answer(session, handle, request)
      .then((reply) => send(reply, response))
      .catch((error: unknown) => {
        onFault(error, request.url ?? '');
        response.destroy();
      });
  };
}

async function startListening(server: Server, port: number): Promise<void> {
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    const why = code === 'EADDRINUSE' ? 'is in use' : `is not available (${code})`;
    throw usageFailure(`port ${port} ${why}: omit --port to use a free one`);
  }
}

async function answer(session: Session, handle: ConsoleHandle, message: IncomingMessage): Promise<Response> {
  const request = requestOf(message);
  const url = request && URL.parse(request.url);
  if (!request || !url) return answerPlain(400, 'Open this page in a browser.');
  if (url.pathname === '/enter') return enter(session, request, url);
  const identity = session.identityOf(request);
  // Without a session, a client does not learn whether a page exists.
  if (!identity || !url.pathname.startsWith(session.base)) return answerPlain(403, noSession);
  url.pathname = url.pathname.slice(session.base.length - 1);
  return handle(new Request(url, request), identity);
}

const noSession =
  'This browser has no console session: it expired after 30 idle minutes, or the address was opened elsewhere first. Open the address that `npm start` printed, or run `npx --no relay-ops console` again.';

function enter(session: Session, request: Request, { searchParams, host }: URL): Response {
  const isLoopback = /^(127\.0\.0\.1|localhost):\d+$/.test(host);
  const cookie =
    request.method === 'GET' && isLoopback ? session.exchange(searchParams.get('token') ?? '') : undefined;
  if (cookie === undefined) return answerPlain(403, noSession);
  return new Response(null, {
    status: 303,
    headers: { ...guardHeaders, location: session.base, 'set-cookie': cookie },
  });
}

function requestOf(message: IncomingMessage): Request | undefined {
  const { method = 'GET', url = '/', headers } = message;
  if (!['GET', 'POST'].includes(method) || !url.startsWith('/')) return undefined;
  const address = URL.parse(`http://${headers.host ?? 'nowhere'}${url}`);
  // `Host: a@b` is an address with a user, which `Request` rejects.
  if (!address || address.username !== '') return undefined;
  const known = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)] as [string, string]],
  );
  const body = method === 'POST' ? Readable.toWeb(message) : null;
  return new Request(address, { method, headers: known, body, duplex: 'half' });
}

/** Streams the body, because a download may be larger than the memory. */
async function send(reply: Response, response: ServerResponse): Promise<void> {
  response.writeHead(reply.status, Object.fromEntries(reply.headers));
  if (!reply.body) return void response.end();
  response.flushHeaders();
  // pipeline cancels a Node stream when the browser leaves or the server closes, but not a web stream.
  await pipeline(Readable.fromWeb(reply.body), response).catch((error: NodeJS.ErrnoException) => {
    if (!leaving.has(String(error.code))) throw error;
  });
}

const leaving: ReadonlySet<string> = new Set(['ERR_STREAM_PREMATURE_CLOSE', 'ECONNRESET', 'EPIPE']);

export const tokenMs = 60_000;
export const idleMs = 30 * 60_000;
const cookieName = 'relay_console';

/**
 * The one session of a console on loopback: a token in the address, valid once and for a minute, becomes a cookie. The cookie's
 * path is secret too: browsers ignore ports for cookies, so other servers of this machine would receive it otherwise.
 * A kept secret gives the same session after each start, so the old address still works. Only `npm start` keeps one, because its tables
 * contain only data of this machine's user.
 */
export class Session {
  readonly token: string;
  /** The path of all pages: `/3fa9.../`. */
  readonly base: string;
  readonly #cookie: string;
  readonly #identity: Identity;
  readonly #clock: OperatorPorts['clock'];
  readonly #madeMs: number;
  readonly #isKept: boolean;
  #isTokenUsed = false;
  #lastMs: number;

  constructor(
    { clock, random }: Pick<OperatorPorts, 'clock' | 'random'>,
    person: Pick<Identity, 'name' | 'role'>,
    kept?: string,
  ) {
    const make = (part: string, bytes: number): string =>
      kept === undefined ? random.hex(bytes) : hash('sha256', `${part} ${kept}`).slice(0, 2 * bytes);
    this.#isKept = kept !== undefined;
    this.token = kept ?? random.hex(32);
    this.base = `/${make('base', 12)}/`;
    this.#cookie = make('cookie', 32);
    this.#identity = { ...person, formToken: make('form', 32) };
    this.#clock = clock;
    this.#madeMs = this.#lastMs = clock.now();
  }

  /** Returns the cookie header, if the token is right, unused and not too old. */
  exchange(token: string): string | undefined {
    if (!isSame(token, this.token)) return undefined;
    const isOld = this.#isTokenUsed || this.#clock.now() - this.#madeMs > tokenMs;
    if (isOld && !this.#isKept) return undefined;
    this.#isTokenUsed = true;
    this.#lastMs = this.#clock.now();
    return `${cookieName}=${this.#cookie}; Path=${this.base}; HttpOnly; SameSite=Strict`;
  }

  identityOf(request: Request): Identity | undefined {
    const isOwn = isSame(readCookie(request, cookieName) ?? '', this.#cookie);
    if (!isOwn || !(this.#isTokenUsed || this.#isKept) || this.isOver()) return undefined;
    this.#lastMs = this.#clock.now();
    return this.#identity;
  }

  /** True if no browser connected within a minute, or none sent a request for 30 minutes. */
  isOver(): boolean {
    if (this.#isKept) return false;
    return this.#clock.now() - this.#lastMs > (this.#isTokenUsed ? idleMs : tokenMs);
  }
}
