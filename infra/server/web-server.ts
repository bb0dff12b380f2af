/**
 * Serves the same handles as the functions over HTTP, many requests at once. Must never end before the calls that it has
 * begun are settled, as long as whoever ends it waits.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { answerRequest, isFromOrigin, originHeader } from '../../shared/adapters/http-entry/http-entry.ts';
import type { HostedHandle, RelayResponse } from '../../shared/relay/http/http.ts';
import { ByteBudget, type Claim } from './byte-budget.ts';
import { InFlight } from './in-flight.ts';
import { hostRequest } from './received-request.ts';
import { readBody } from './request-body.ts';
import { send } from './send-answer.ts';
import type { ServerOptions } from './server-options.ts';
import { turnedAway } from './turned-away.ts';
import { Turns } from './turns.ts';

/** Probes need no origin secret here, and nothing of the tables: a store that is away is no reason to restart. */
export const healthPath = '/server/health';

/** As long as a function may run, so that the setting `request_seconds` means the same on every host. */
const requestMsMax = 900_000;
/** Of a body that takes some milliseconds to parse. */
const largeBytes = 128 * 1024;
/** For a whole request to arrive. */
const arrivalMsMax = 120_000;
/** Longer than load balancers and distributions keep idle connections, so that none sends on a closing one. */
const keepAliveMs = 75_000;
/** Load balancers and distributions keep many that are idle. */
const connectionsPerRequest = 16;
/** After running answers were ended: for their last words to reach the client, and then for their bills. */
const lastWordsMs = 2_000;
const settleMs = 4_000;

export interface WebServerParts {
  /** Which handle serves a raw path. */
  route(path: string): HostedHandle;
  options: Pick<ServerOptions, 'bodyBytesMax' | 'requestsMax'>;
  /** Part of the base URL, unless a distribution sends another name. Absent: the address of the server. */
  publicHost: string | undefined;
}

export class WebServer {
  readonly #parts: WebServerParts;
  readonly #server: Server;
  readonly #budget: ByteBudget;
  readonly #inFlight = new InFlight();
  readonly #turns = new Turns();
  readonly #ends = new AbortController();
  #isEnding = false;

  constructor(parts: WebServerParts) {
    this.#parts = parts;
    this.#budget = new ByteBudget(parts.options.bodyBytesMax);
    this.#server = createServer({ keepAliveTimeout: keepAliveMs, requestTimeout: arrivalMsMax });
    this.#server.maxConnections = connectionsPerRequest * parts.options.requestsMax;
    // A client that ends its side after the request still reads the answer. Node has the switch, but no type for it.
    Object.assign(this.#server, { httpAllowHalfOpen: true });
    this.#server.on('request', (request, response) => this.#inFlight.add(this.#serve(request, response)));
    this.#server.on('clientError', (_, socket) => {
      if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n');
      else socket.destroy();
    });
  }

  /** Rejects when the address cannot be had. */
  async listen({ host, port }: Pick<ServerOptions, 'host' | 'port'>): Promise<AddressInfo> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, host, () => resolve(void this.#server.off('error', reject)));
    });
    return this.#server.address() as AddressInfo;
  }

  /** Requests that are not settled. */
  get count(): number {
    return this.#inFlight.count;
  }

  /**
   * Accepts nothing more, lets answers run for `drainMs`, ends those that still run as at their deadline, and waits for
   * all bills. Returns how many requests are not settled.
   */
  async end(drainMs: number): Promise<number> {
    this.#isEnding = true;
    this.#server.close();
    if (await this.#inFlight.endsWithin(drainMs)) return 0;
    this.#ends.abort();
    if (await this.#inFlight.endsWithin(lastWordsMs)) return 0;
    this.#server.closeAllConnections();
    await this.#inFlight.endsWithin(settleMs);
    return this.#inFlight.count;
  }

  /** Never rejects. */
  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // Without a listener Node throws what a broken connection reports.
    response.on('error', () => undefined);
    if (request.url === healthPath) return this.#answerProbe(response);
    const [path = ''] = (request.url ?? '').split('?');
    const hosted = this.#parts.route(path);
    const claim = this.#budget.claim();
    try {
      await this.#answer(request, response, { hosted, claim });
    } catch (error) {
      hosted.log.fault('server', error);
      response.destroy();
    } finally {
      claim.release();
    }
  }

  async #answer(
    request: IncomingMessage,
    response: ServerResponse,
    { hosted, claim }: { hosted: HostedHandle; claim: Claim },
  ): Promise<void> {
    const answer = await this.#answerTo(request, { hosted, claim });
    if (answer === 'gone') return void response.destroy();
    const id = answer.headers['x-request-id'] ?? '';
    const onFault = (error: unknown): void => hosted.log.fault(id, error);
    await send(response, answer, { closes: this.#isEnding, onFault });
    await answer.done;
  }

  async #answerTo(
    request: IncomingMessage,
    { hosted, claim }: { hosted: HostedHandle; claim: Claim },
  ): Promise<RelayResponse | 'gone'> {
    if (this.#isEnding) return turnedAway(hosted, 'ending');
    if (this.#inFlight.count >= this.#parts.options.requestsMax)
      return turnedAway(hosted, 'requests_at_once');
    const body = await this.#bodyOf(request, { hosted, claim });
    if (body === 'gone') return body;
    if (typeof body === 'string') return turnedAway(hosted, body);
    if (body.length > largeBytes) await this.#turns.next();
    const held = { body };
    const answer = await answerRequest(hosted, () =>
      hostRequest(request, {
        body: () => held.body,
        host: this.#parts.publicHost ?? this.#ownAddress(),
        deadlineMs: hosted.clock.now() + requestMsMax,
        ends: this.#ends.signal,
      }),
    );
    // The relay has read it, and refers to the request as long as the answer runs.
    held.body = Buffer.alloc(0);
    return answer;
  }

  /** Strangers, who are refused, hold no memory: without the origin secret no body is kept. */
  async #bodyOf(request: IncomingMessage, { hosted, claim }: { hosted: HostedHandle; claim: Claim }) {
    const secret = request.headers[originHeader];
    const isRead = request.method === 'POST' && isFromOrigin(secret?.toString(), hosted);
    return isRead ? readBody(request, { budget: this.#budget, claim }) : Buffer.alloc(0);
  }

  #ownAddress(): string {
    const { address, family, port } = this.#server.address() as AddressInfo;
    return family === 'IPv6' ? `[${address}]:${port}` : `${address}:${port}`;
  }

  #answerProbe(response: ServerResponse): void {
    const text = this.#isEnding ? 'ending' : 'ok';
    const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' };
    response.writeHead(this.#isEnding ? 503 : 200, headers).end(JSON.stringify({ status: text }));
  }
}
