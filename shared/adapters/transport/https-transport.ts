/**
 * Sends requests to upstreams over kept connections. Does not follow redirects: a 3xx is a normal reply. Must never connect
 * to an address that is not public, but the local stack may connect to this machine.
 */
import type { Agent, ClientRequest, IncomingMessage } from 'node:http';
import { isIP, type Socket, type LookupFunction } from 'node:net';
import { Agent as HttpsAgent, request as requestOverHttps } from 'node:https';
import { Readable, pipeline, type Transform } from 'node:stream';
import { constants, createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib';
import { lookup as systemLookup, type LookupAddress, type LookupOptions } from 'node:dns';
import type { UpstreamTransport } from '../../relay/ports/host.ts';
import {
  TransportError,
  type UpstreamReply,
  type UpstreamRequest,
  type ConnectFault,
} from '../../upstreams/exchange.ts';
import { isLoopbackAddress, isPublicAddress } from '../../upstreams/endpoint-rules.ts';
import type { RequestSigner } from '../aws/aws-signature.ts';
import { Agent as HttpAgent, request as requestOverHttp } from '../system/node-http.ts';

/** A function that was frozen longer closes idle connections before it uses them. */
const idleConnectionMs = 60_000;

interface TransportOptions extends AddressRules {
  resolve?: Resolve;
  sign?: RequestSigner;
}

export function createHttpsTransport({ local, resolve, sign }: TransportOptions): UpstreamTransport {
  const lookup = createPublicLookup({ local }, resolve);
  const agentOptions = { keepAlive: true, timeout: idleConnectionMs, lookup };
  const agents = { http: new HttpAgent(agentOptions), https: new HttpsAgent(agentOptions) };
  return {
    async send(request, signal) {
      const url = checkUrl(request.url, { local });
      const agent = url.protocol === 'https:' ? agents.https : agents.http;
      const { awsScope: scope } = request;
      if (scope && !sign) throw new TransportError('connect', 'Nothing signs requests here.');
      const headers = scope && sign ? await sign(request, scope) : request.headers;
      const call = { ...request, url, agent, headers };
      try {
        return await sendOnce(call, signal);
      } catch (error) {
        if (!(error instanceof StaleConnection)) throw error;
        dropIdleConnections(agent, url);
        return await sendOnce(call, signal);
      }
    },
  };
}

interface Call extends Pick<UpstreamRequest, 'method' | 'headers' | 'connectTimeoutMs' | 'body'> {
  url: URL;
  agent: Agent;
}

async function sendOnce(call: Call, signal: AbortSignal): Promise<UpstreamReply> {
  if (signal.aborted) throw createAbortError();
  const secure = call.url.protocol === 'https:';
  const request = openRequest(call, secure);
  const explain = watchConnection(request, { secure, timeoutMs: call.connectTimeoutMs });
  const replied = new Promise<UpstreamReply>((resolve, reject) => {
    const giveUp = () => request.destroy();
    signal.addEventListener('abort', giveUp);
    request.once('close', () => signal.removeEventListener('abort', giveUp));
    // Stays attached to catch errors after the reply's head.
    request.on('error', (error) => reject(signal.aborted ? createAbortError() : explain(error)));
    // Node reports no error for an unrequested 101.
    const failUnanswered = () =>
      reject(new TransportError('reset', 'The connection closed without a reply.'));
    request.once('close', failUnanswered);
    request.once('response', (reply) => {
      request.off('close', failUnanswered);
      resolve({
        status: reply.statusCode ?? 0,
        headers: Object.fromEntries(
          Object.entries(reply.headers).map(([name, value]) => [name, value?.toString()]),
        ),
        body: replyBody(reply, signal),
      });
    });
  });
  // Not inside the functions above: they live as long as the reply and would keep the body. A string body leaves in one write
  // with the head.
  request.end(call.body);
  return replied;
}

const createAbortError = (): TransportError => new TransportError('aborted', 'The call was aborted.');

function openRequest({ method = 'POST', url, agent, body, headers }: Call, secure: boolean): ClientRequest {
  const options = {
    method,
    agent,
    headers: { ...headers, 'accept-encoding': 'identity', 'content-length': String(Buffer.byteLength(body)) },
  };
  try {
    return secure ? requestOverHttps(url, options) : requestOverHttp(url, options);
  } catch {
    throw new TransportError('connect', 'The request holds a header that cannot be sent.');
  }
}

/** Allows plain http only to this machine. IP addresses are checked here, because they are never resolved. */
function checkUrl(text: string, rules: AddressRules): URL {
  const url = URL.parse(text);
  const host = url?.hostname.replace(/^\[|\]$/g, '') ?? '';
  const loopback = host === 'localhost' || isLoopbackAddress(host);
  if (!url || !(url.protocol === 'https:' || (url.protocol === 'http:' && loopback))) {
    throw new TransportError('connect', 'The address is neither https nor on loopback.', {
      fault: 'address',
    });
  }
  if (isIP(host) !== 0 && !isAllowedAddress(host, rules)) {
    throw new TransportError('connect', 'The address is not public.', { fault: 'address' });
  }
  return url;
}

/** If one kept connection to a host is dead, usually all idle ones are. */
function dropIdleConnections(agent: Agent, { hostname, port, protocol }: URL): void {
  const host = hostname.replace(/^\[|\]$/g, '');
  const prefix = `${host}:${port || (protocol === 'https:' ? 443 : 80)}:`;
  for (const [name, sockets] of Object.entries(agent.freeSockets)) {
    if (name.startsWith(prefix)) for (const socket of sockets ?? []) socket.destroy();
  }
}

/** A kept connection was closed before any byte of the reply. The request can be sent again. */
class StaleConnection extends TransportError {
  constructor() {
    super('reset', 'A kept connection was closed by the other side.');
  }
}

/**
 * Limits the time to connect, including TLS. Returns a function that classifies a failure by the stage it happened in.
 * Messages hold codes, never foreign text.
 */
function watchConnection(
  request: ClientRequest,
  { secure, timeoutMs }: { secure: boolean; timeoutMs: number },
): (error: Error) => TransportError {
  let socket: Socket | undefined;
  let bytesReadBefore = 0;
  let connected = false;
  let handshaking = false;
  const createTimeoutError = () =>
    new TransportError('connect', `No connection within ${timeoutMs} ms.`, { fault: 'timeout' });
  const timer = setTimeout(() => request.destroy(createTimeoutError()), timeoutMs);
  const markConnected = () => {
    connected = true;
    clearTimeout(timer);
  };
  request.once('close', () => clearTimeout(timer));
  request.once('socket', (given) => {
    socket = given;
    bytesReadBefore = given.bytesRead;
    if (request.reusedSocket) return markConnected();
    given.once('connect', () => {
      handshaking = secure;
    });
    given.once(secure ? 'secureConnect' : 'connect', markConnected);
  });
  return (error) => {
    if (error instanceof TransportError) return error;
    const code = 'code' in error && typeof error.code === 'string' ? error.code : 'unknown';
    if (!connected) {
      const facts = { code, fault: classifyConnectFault(code, { handshaking }) };
      return new TransportError('connect', `No connection (${code}).`, facts);
    }
    const silent = socket?.bytesRead === bytesReadBefore;
    const closed = code === 'ECONNRESET' || code === 'EPIPE';
    if (request.reusedSocket && silent && closed) return new StaleConnection();
    return new TransportError('reset', `The connection broke (${code}).`, { code });
  };
}

/** Before TCP is connected: codes of Node's resolver, sockets, and our lookup. */
const connectFaults: Record<string, ConnectFault> = {
  ECONNREFUSED: 'refused',
  EHOSTUNREACH: 'unreachable',
  ENETUNREACH: 'unreachable',
  EADDRNOTAVAIL: 'unreachable',
  ETIMEDOUT: 'timeout',
  ENOTFOUND: 'dns',
  EAI_AGAIN: 'dns',
  EAI_FAIL: 'dns',
  EAI_NODATA: 'dns',
  ENODATA: 'dns',
  ESERVFAIL: 'dns',
  EPRIVATE: 'address',
};

const untrusted =
  /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_|CERT_UNTRUSTED|CERT_REVOKED|INVALID_CA)/;

/** Reads codes only, never a message. `handshaking`: TCP was connected. */
function classifyConnectFault(
  code: string,
  { handshaking }: { handshaking: boolean },
): ConnectFault | undefined {
  if (!handshaking) return Object.hasOwn(connectFaults, code) ? connectFaults[code] : undefined;
  if (code === 'CERT_HAS_EXPIRED') return 'tls_expired';
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'tls_host';
  return untrusted.test(code) ? 'tls_untrusted' : 'tls';
}

// Addresses are checked when a name is resolved: the check of the configuration is not enough, because a name may later
// resolve to another address.

interface AddressRules {
  local: boolean;
}

const isAllowedAddress = (address: string, { local }: AddressRules): boolean =>
  isPublicAddress(address) || (local && isLoopbackAddress(address));

export type Resolve = (
  name: string,
  options: LookupOptions & { all: true },
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/**
 * Fails with `EPRIVATE` if any address of the name is not allowed: a private address among public ones indicates an attack.
 */
function createPublicLookup(rules: AddressRules, resolve: Resolve = systemLookup): LookupFunction {
  return (name, options, done) => {
    resolve(name, { ...options, all: true }, (error, addresses) => {
      const refused = error ?? refuseAddresses(addresses, rules);
      const [first] = refused ? [] : addresses;
      if (refused || !first) return done(refused ?? createLookupError('ENOTFOUND'), []);
      if (options.all) done(null, addresses);
      else done(null, first.address, first.family);
    });
  };
}

const refuseAddresses = (
  addresses: LookupAddress[],
  rules: AddressRules,
): NodeJS.ErrnoException | undefined =>
  addresses.every(({ address }) => isAllowedAddress(address, rules))
    ? undefined
    : createLookupError('EPRIVATE');

const createLookupError = (code: string): NodeJS.ErrnoException =>
  Object.assign(new Error('The host name has no address, or one that is not allowed.'), { code });

// The reply's body: an async sequence that can be returned early, decompressed if needed.

/** Readers return at `[DONE]`, shortly before the reply ends. Waiting for the end keeps the connection. */
const lingerMs = 100;

/** No compression is requested, but some proxies compress anyway. */
function replyBody(reply: IncomingMessage, signal: AbortSignal): AsyncIterable<Uint8Array> {
  const encoding = reply.headers['content-encoding']?.trim().toLowerCase() ?? '';
  const bytes = readBytes(reply, signal);
  if (encoding === '' || encoding === 'identity') return bytes;
  return {
    [Symbol.asyncIterator]: () => {
      const reads = bytes[Symbol.asyncIterator]();
      let decoding: AsyncGenerator<Uint8Array, void, undefined> | undefined;
      return {
        async next() {
          decoding ??= decodeReply(reads, encoding);
          return decoding.next();
        },
        async return() {
          await reads.return?.();
          void decoding?.return();
          return { done: true, value: undefined };
        },
      };
    },
  };
}

/**
 * A failure rejects the pending read with a TransportError. An early return does not wait for a pending read; it closes the
 * connection unless the reply ends within `lingerMs`.
 */
function readBytes(reply: IncomingMessage, signal: AbortSignal): AsyncIterable<Uint8Array> {
  // Without a listener Node would throw the error.
  reply.on('error', () => undefined);
  return {
    [Symbol.asyncIterator]: () => {
      const reads: AsyncIterator<Uint8Array> = reply.iterator({ destroyOnReturn: false });
      let left = false;
      return {
        async next() {
          try {
            return left ? { done: true, value: undefined } : await reads.next();
          } catch {
            if (left) return { done: true, value: undefined };
            throw signal.aborted
              ? new TransportError('aborted', 'The call was aborted while the reply was read.')
              : new TransportError('reset', 'The connection broke while the reply was read.');
          }
        },
        async return() {
          left = true;
          linger(reply, reads);
          return { done: true, value: undefined };
        },
      };
    },
  };
}

function linger(reply: IncomingMessage, reads: AsyncIterator<Uint8Array>): void {
  if (reply.readableEnded) return;
  const timer = setTimeout(() => reply.destroy(), lingerMs);
  reply.once('close', () => clearTimeout(timer));
  // Drain the rest only after the iterator released the stream.
  const released = reads.return?.() ?? Promise.resolve();
  released.then(
    () => reply.resume(),
    () => reply.destroy(),
  );
}

const flush = constants.Z_SYNC_FLUSH;

/** The first byte tells the two forms of `deflate` apart. */
const decoders: Record<string, (first: number) => Transform> = {
  gzip: () => createGunzip({ flush }),
  'x-gzip': () => createGunzip({ flush }),
  deflate: (first) => ((first & 0x0f) === 8 ? createInflate({ flush }) : createInflateRaw({ flush })),
  br: () => createBrotliDecompress({ flush: constants.BROTLI_OPERATION_FLUSH }),
};

const createEncodingError = (): TransportError =>
  new TransportError('encoding', 'The reply has an encoding that cannot be read.');

/**
 * Decompresses a reply as it arrives, a little at a time, so the reader bounds what a small reply can become. Throws the
 * reads' TransportError, or one of kind `encoding`. An early return ends the reads.
 */
async function* decodeReply(
  reads: AsyncIterator<Uint8Array>,
  encoding: string,
): AsyncGenerator<Uint8Array, void, undefined> {
  let output: Transform | undefined;
  try {
    const create = Object.hasOwn(decoders, encoding) ? decoders[encoding] : undefined;
    if (!create) throw createEncodingError();
    const { value: first, done } = await reads.next();
    if (done) return;
    output = create(first[0] ?? 0);
    pipeline(Readable.from(prependRead(first, reads), { objectMode: false }), output, () => undefined);
    yield* output;
  } catch (error) {
    throw error instanceof TransportError ? error : createEncodingError();
  } finally {
    output?.destroy();
    await reads.return?.();
  }
}

async function* prependRead(first: Uint8Array, reads: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield first;
  for (;;) {
    const { value, done } = await reads.next();
    if (done) return;
    yield value;
  }
}
