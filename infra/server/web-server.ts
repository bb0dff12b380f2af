/**
 * Serves the handles of the functions over HTTP, many requests at once. Must never exit before its calls are settled, unless the
 * platform kills it.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  createHttpEntry,
  isFromOrigin,
  originHeader,
  type HostRequest,
  refuseTooLarge,
} from '../../shared/adapters/entry/http-entry.ts';
import type { HostedHandle } from '../../shared/relay/http/http.ts';
import { laneOf, type CallThread, type LaneName, type ThreadCall } from './call-thread.ts';
import {
  Arrivals,
  ByteBudget,
  type BytesLeft,
  type Claim,
  readBody,
  type BodyFault,
} from './request-body.ts';
import type { ServerOptions } from './server-options.ts';
import {
  defaultFunction,
  isServed,
  compilePattern,
  routes,
  type ServedFunctionName,
} from '../stack/constructs/function-descriptions.ts';
import { isWhole, writeBody, type HostAnswer } from '../../shared/adapters/entry/lambda-handlers.ts';
import { respondRefusal, refuse, type Refusal } from '../../shared/relay/http/refusal.ts';

/** Probes need neither an origin secret nor the tables, because a restart does not help if the store is unavailable. */
export const healthPath = '/server/health';

/** The limit of a function, so that the setting `request_seconds` means the same on every host. */
const requestMsMax = 900_000;
/** The time for a whole request: 32 MB at 4.5 Mbit/s. Also the interval of Node's check. */
const arrivalMsMax = 60_000;
const arrivalChecksMs = 5_000;
/** The time for each 4 MB. Most bodies arrive within a second. */
const slowBodyMs = 5_000;
/** The number of arriving requests for each concurrent one. */
const arrivalsPerRequest = 4;
/** Longer than load balancers and distributions keep idle connections, so that none uses a closing one. */
const keepAliveMs = 75_000;
/** Load balancers and distributions keep many idle connections. */
const connectionsPerRequest = 16;
/** The time for a client that is still sending to read why its body was refused. */
const restMs = 1_000;
/** The time to send the last bytes of ended answers, and then to settle them. */
const lastWordsMs = 2_000;
const settleMs = 4_000;

interface WebServerParts {
  route(path: string): Route;
  options: Pick<ServerOptions, 'requestBytesMax' | 'requestsMax'>;
  /** Bytes of the bodies of all requests in flight. */
  room: BytesLeft;
  /** Answers calls that would block this thread. */
  threads: Partial<Record<LaneName, Pick<CallThread, 'answer'>>>;
  /** Host of the base URL, unless a distribution sends another name. By default the server's address. */
  publicHost: string | undefined;
  /** Time limits for bodies; defaults above. */
  timeouts?: { arrivalMs?: number; slowMs?: number };
}

export class WebServer {
  readonly #parts: WebServerParts;
  readonly #server: Server;
  readonly #budget: ByteBudget;
  readonly #arrivals: Arrivals;
  readonly #inFlight = new InFlight();
  /** Requests with complete bodies, until they are settled. */
  #answering = 0;
  readonly #ends = new AbortController();
  #isEnding = false;

  constructor(parts: WebServerParts) {
    this.#parts = parts;
    this.#budget = new ByteBudget(parts.room);
    const { arrivalMs = arrivalMsMax, slowMs = slowBodyMs } = parts.timeouts ?? {};
    this.#arrivals = new Arrivals({ most: arrivalsPerRequest * parts.options.requestsMax, slowMs });
    // Node answers unreadable requests itself: 400, 408, 431, or a broken connection during an answer.
    this.#server = createServer({
      keepAliveTimeout: keepAliveMs,
      requestTimeout: arrivalMs,
      headersTimeout: arrivalMs,
      connectionsCheckingInterval: Math.min(arrivalChecksMs, arrivalMs),
    });
    this.#server.maxConnections = connectionsPerRequest * parts.options.requestsMax;
    // A client that closes its side after the request still reads the answer. Node's types lack this switch.
    Object.assign(this.#server, { httpAllowHalfOpen: true });
    this.#server.on('request', (request, response) => this.#inFlight.add(this.#serve(request, response)));
  }

  /** Rejects if the address is not available. */
  async listen({ host, port }: Pick<ServerOptions, 'host' | 'port'>): Promise<AddressInfo> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, host, () => resolve(void this.#server.off('error', reject)));
    });
    return this.#server.address() as AddressInfo;
  }

  /** Requests whose bodies are incomplete. */
  get arriving(): number {
    return this.#arrivals.count;
  }

  /** Requests that are not settled. */
  get count(): number {
    return this.#inFlight.count;
  }

  /**
   * Refuses new and arriving requests, lets answers run for `drainMs`, ends the rest as at their deadline, and waits until all are
   * settled. Returns the number of requests that are not.
   */
  async end(drainMs: number): Promise<number> {
    this.#isEnding = true;
    this.#server.close();
    this.#arrivals.dismissAll();
    if (await this.#inFlight.endsWithin(drainMs)) return 0;
    this.#ends.abort();
    if (await this.#inFlight.endsWithin(lastWordsMs)) return 0;
    this.#server.closeAllConnections();
    await this.#inFlight.endsWithin(settleMs);
    return this.#inFlight.count;
  }

  /** Never rejects. */
  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // Without a listener Node would throw the error of a broken connection.
    response.on('error', () => undefined);
    if (request.url === healthPath) return this.#answerProbe(response);
    const [path = ''] = (request.url ?? '').split('?');
    const route = this.#parts.route(path);
    const claim = this.#budget.claim();
    try {
      await this.#answer(request, response, { route, claim });
    } catch (error) {
      route.hosted.log.fault('server', error);
      response.destroy();
    } finally {
      claim.release();
    }
  }

  async #answer(
    request: IncomingMessage,
    response: ServerResponse,
    { route, claim }: { route: Route; claim: Claim },
  ): Promise<void> {
    const { hosted } = route;
    const body = this.#findRefusalReason() ?? (await this.#bodyOf(request, { route, claim }));
    if (body === 'gone') return void response.destroy();
    const why = typeof body === 'string' ? body : this.#findRefusalReason();
    if (why !== undefined) {
      const closes = this.#isEnding || why === 'slow';
      const rest = (): Promise<void> => restOf(request);
      return send(response, refuseRequest(hosted, this.#chooseRefusal(why)), {
        closes,
        rest,
        onFault: () => undefined,
      });
    }
    if (typeof body === 'string') return;
    this.#answering += 1;
    try {
      const answer = await this.#answerTo(request, { route, body, claim });
      const id = answer.headers['x-request-id'] ?? '';
      const onFault = (error: unknown): void => hosted.log.fault(id, error);
      await send(response, answer, { closes: this.#isEnding, onFault });
      await answer.done;
    } finally {
      this.#answering -= 1;
    }
  }

  async #answerTo(
    request: IncomingMessage,
    {
      route: { name, hosted, enter },
      body,
      claim,
    }: { route: Route; body: Buffer<ArrayBuffer>; claim: Claim },
  ): Promise<HostAnswer> {
    const asked = buildHostRequest(request, {
      host: this.#parts.publicHost ?? this.#formatAddress(),
      deadlineMs: hosted.clock.now() + requestMsMax,
    });
    const ends = this.#ends.signal;
    const lane = laneOf({ ...asked, body });
    const thread = lane && this.#parts.threads[lane];
    if (thread) return thread.answer({ route: name, request: asked, body }, ends);
    const { requestBytesMax: bodyBytesMax } = this.#parts.options;
    // A body that stays on this thread is small enough for one turn of the event loop.
    const shared = { bodyBytesMax, room: claim, turn: () => Promise.resolve() };
    return enter(() => ({ ...asked, body: () => body, ends, shared }));
  }

  /** Keeps no body of a request without the origin secret and a key, so that strangers take no memory. No refusal needs the body. */
  async #bodyOf(
    request: IncomingMessage,
    { route, claim }: { route: Route; claim: Claim },
  ): Promise<Buffer<ArrayBuffer> | BodyFault> {
    const { headers, method } = request;
    const isKnown = isFromOrigin(headers[originHeader]?.toString(), route.hosted);
    const hasKey = headers.authorization !== undefined || headers['x-api-key'] !== undefined;
    const bytesMax = this.#parts.options.requestBytesMax;
    return isKnown && hasKey && method === 'POST'
      ? readBody(request, { bytesMax, budget: this.#budget, arrivals: this.#arrivals, claim })
      : Buffer.alloc(0);
  }

  #chooseRefusal(why: TurnedAway | 'too_large'): Refusal {
    if (why !== 'too_large') return refusals[why]();
    return refuseTooLarge('has more bytes', { bodyBytesMax: this.#parts.options.requestBytesMax });
  }

  /** The reason why no more requests are answered. */
  #findRefusalReason(): 'ending' | 'requests_at_once' | undefined {
    if (this.#isEnding) return 'ending';
    return this.#answering >= this.#parts.options.requestsMax ? 'requests_at_once' : undefined;
  }

  #formatAddress(): string {
    const { address, family, port } = this.#server.address() as AddressInfo;
    return family === 'IPv6' ? `[${address}]:${port}` : `${address}:${port}`;
  }

  #answerProbe(response: ServerResponse): void {
    const text = this.#isEnding ? 'ending' : 'ok';
    const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' };
    response.writeHead(this.#isEnding ? 503 : 200, headers).end(JSON.stringify({ status: text }));
  }
}

// Chooses the handle of the function to which the distribution sends the path.

interface Route {
  name: ServedFunctionName;
  hosted: HostedHandle;
  enter: ReturnType<typeof createHttpEntry>;
}

/** The server does not know paths of functions that it does not replace. */
export function createRouting(
  handles: Readonly<Record<ServedFunctionName, HostedHandle>>,
): (path: string) => Route {
  const routeTo = (name: ServedFunctionName): Route => ({
    name,
    hosted: handles[name],
    enter: createHttpEntry(handles[name]),
  });
  const known = routes.flatMap(({ path, function: name }) =>
    isServed(name) ? [{ pattern: compilePattern(path), route: routeTo(name) }] : [],
  );
  const others = routeTo(defaultFunction);
  return (path) => known.find(({ pattern }) => pattern.test(path))?.route ?? others;
}

// Converts Node's request to the form that all hosts share.

function buildHostRequest(
  request: IncomingMessage,
  host: Pick<HostRequest, 'host' | 'deadlineMs'>,
): ThreadCall['request'] {
  const { method = 'GET', url = '/' } = request;
  const [path = '/', query = ''] = url.split(/\?(.*)/s);
  return {
    ...host,
    method,
    path,
    query,
    headers: Object.fromEntries(
      Object.entries(request.headersDistinct).map(([name, values]) => [name, values?.join(', ')]),
    ),
  };
}

// Sends an answer of the relay over a connection.

interface Sending {
  /** True if the connection takes no further request. */
  closes: boolean;
  /** Resolves when nothing more must be read from the client. */
  rest?: () => Promise<void>;
  onFault: (error: unknown) => void;
}

/**
 * Reads and drops bytes for a while. Closing a connection with unread bytes resets it, and a client that is still sending would fail
 * before it reads the answer.
 */
async function restOf(request: IncomingMessage): Promise<void> {
  if (request.complete || request.destroyed) return;
  const enough = { signal: AbortSignal.timeout(restMs) };
  request.resume();
  await Promise.race([once(request, 'end', enough), once(request, 'close', enough)]).catch(() => undefined);
}

/** Resolves when the connection took everything, or broke. Sends status and headers at once. */
async function send(
  response: ServerResponse,
  answer: HostAnswer,
  { closes, rest, onFault }: Sending,
): Promise<void> {
  const { body, headers, status } = answer;
  const hasAll = isWhole(body) && body.length > 0;
  if (!response.destroyed) {
    response.writeHead(status, {
      ...headers,
      ...(hasAll && { 'content-length': Buffer.byteLength(body) }),
      ...(closes && { connection: 'close' }),
    });
    if (!hasAll) response.flushHeaders();
  }
  if (!hasAll || !rest) return writeBody(response, answer, onFault);
  response.write(body);
  await rest();
  await writeBody(response, { ...answer, body: '' }, onFault);
}

// Answers requests that the server refuses because it is stopping or has no room.

type TurnedAway = 'ending' | 'requests_at_once' | 'no_room' | 'slow';

const createUnavailable = (message: string, reason: string): Refusal =>
  refuse('unavailable', `${message} Nothing was charged; try again.`, {
    headers: { 'retry-after': '1' },
    reason,
  });

const refusals: Record<TurnedAway, () => Refusal> = {
  ending: () => createUnavailable('This server is shutting down.', 'server_ending'),
  requests_at_once: () =>
    createUnavailable('This server has reached its limit of concurrent requests.', 'server_requests_at_once'),
  no_room: () => createUnavailable('This server has no room for the body right now.', 'server_no_room'),
  slow: () =>
    createUnavailable('The body arrived too slowly while other requests waited.', 'server_slow_body'),
};

/** Builds the answer and logs it. */
function refuseRequest({ ids, log }: Pick<HostedHandle, 'ids' | 'log'>, refusal: Refusal): HostAnswer {
  const id = ids.next();
  log.request({
    request_id: id,
    endpoint: 'server',
    status: refusal.status,
    end: 'refused',
    duration_ms: 0,
    code: refusal.body.error.code,
    reason: refusal.reason,
  });
  return respondRefusal(refusal, id);
}

/** The running work: answers, and their settlement after the last byte. */
class InFlight {
  readonly #work = new Set<Promise<void>>();

  get count(): number {
    return this.#work.size;
  }

  add(work: Promise<void>): void {
    this.#work.add(work);
    const removeWork = (): void => void this.#work.delete(work);
    work.then(removeWork, removeWork);
  }

  /** Waits until nothing runs, at most this long. */
  async endsWithin(waitMs: number): Promise<boolean> {
    const up = new AbortController();
    const timer = setTimeout(() => up.abort(), waitMs);
    const timeUp = once(up.signal, 'abort');
    while (this.#work.size > 0 && !up.signal.aborted)
      await Promise.race([timeUp, Promise.allSettled(this.#work)]);
    clearTimeout(timer);
    return this.#work.size === 0;
  }
}
