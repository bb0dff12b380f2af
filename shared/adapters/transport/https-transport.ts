/**
 * Sends requests to upstreams over kept connections. Does not follow redirects: a 3xx is a normal reply. Must
 * never connect to an address that is not public; only the local stack may connect to this machine.
 */
import {
  Agent as HttpAgent,
  request as requestOverHttp,
  type ClientRequest,
  type IncomingMessage,
} from 'node:http';
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

/**
 * Closes idle connections. After a longer freeze of the function it closes them before they are used again.
 */
const idleConnectionMs = 60_000;

interface TransportOptions extends AddressRules {
  /** How names are resolved. Absent: by the system. */
  resolve?: Resolve;
  /** Signs the requests that need it. Absent: no request is signed. */
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
  agent: HttpAgent;
}

async function sendOnce(call: Call, signal: AbortSignal): Promise<UpstreamReply> {
  if (signal.aborted) throw givenUp();
  const secure = call.url.protocol === 'https:';
  const request = openRequest(call, secure);
  const explain = watchConnection(request, { secure, timeoutMs: call.connectTimeoutMs });
  const replied = new Promise<UpstreamReply>((resolve, reject) => {
    const giveUp = () => request.destroy();
    signal.addEventListener('abort', giveUp);
    request.once('close', () => signal.removeEventListener('abort', giveUp));
    // Stays attached after the reply's head, to catch late errors.
    request.on('error', (error) => reject(signal.aborted ? givenUp() : explain(error)));
    // Node closes the request without an error when the reply is an unrequested 101.
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
  // Outside of the functions above, which live as long as the reply: they would keep the body.
  // As a text it leaves in one write with the head.
  request.end(call.body);
  return replied;
}

const givenUp = (): TransportError => new TransportError('aborted', 'The call was given up.');

function openRequest({ method = 'POST', url, agent, body, headers }: Call, secure: boolean): ClientRequest {
  const options = {
    method,
    agent,
    headers: { ...headers, 'accept-encoding': 'identity', 'content-length': String(Buffer.byteLength(body)) },
  };
  try {
    return secure ? requestOverHttps(url, options) : requestOverHttp(url, options);
  } catch {
    // Node throws at invalid headers.
    throw new TransportError('connect', 'The request holds a header that cannot be sent.');
  }
}

/**
 * Plain http is allowed only to this machine. An IP address in place of a name is checked here, because it is
 * never resolved.
 */
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

/** When one kept connection to a host is dead, usually all idle ones are. */
function dropIdleConnections(agent: HttpAgent, { hostname, port, protocol }: URL): void {
  const host = hostname.replace(/^\[|\]$/g, '');
  const prefix = `${host}:${port || (protocol === 'https:' ? 443 : 80)}:`;
  for (const [name, sockets] of Object.entries(agent.freeSockets)) {
    if (name.startsWith(prefix)) for (const socket of sockets ?? []) socket.destroy();
  }
}

// Limits the time to connect, and classifies a failure by the stage that the request had reached.

/**
 * A kept connection was closed before any byte of a reply arrived. The request can be sent again on a new
 * connection.
 */
class StaleConnection extends TransportError {
  constructor() {
    super('reset', 'A kept connection was closed by the other side.');
  }
}

/**
 * Returns what classifies a failure by the stage that was reached. Messages hold codes, never foreign text. `timeoutMs`
 * limits connecting, including TLS.
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

// Names the cause of a failed connection by its stage and the system's code; must never read a message.

/** Before TCP is connected. The codes of Node's resolver, of sockets, and of our own lookup. */
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

/** OpenSSL's words for a chain that ends at nobody who is trusted. */
const untrusted =
  /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_|CERT_UNTRUSTED|CERT_REVOKED|INVALID_CA)/;

/** `handshaking`: TCP was connected. Undefined: a cause without a name of its own. */
function classifyConnectFault(
  code: string,
  { handshaking }: { handshaking: boolean },
): ConnectFault | undefined {
  if (!handshaking) return Object.hasOwn(connectFaults, code) ? connectFaults[code] : undefined;
  if (code === 'CERT_HAS_EXPIRED') return 'tls_expired';
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'tls_host';
  return untrusted.test(code) ? 'tls_untrusted' : 'tls';
}

// Checks addresses when a name is resolved. The configuration check alone is not enough, because a name may
// later resolve to another address.

interface AddressRules {
  /** true on the local stack: connections to this machine are allowed. */
  local: boolean;
}

/** Whether the relay may connect to this address. */
const isAllowedAddress = (address: string, { local }: AddressRules): boolean =>
  isPublicAddress(address) || (local && isLoopbackAddress(address));

/** Resolves a name to all its addresses. The error contains none of them. */
export type Resolve = (
  name: string,
  options: LookupOptions & { all: true },
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/**
 * A lookup for sockets. Fails with `EPRIVATE` when any address of the name is not allowed: a private address
 * among public ones indicates an attack.
 */
function createPublicLookup(rules: AddressRules, resolve: Resolve = systemLookup): LookupFunction {
  return (name, options, done) => {
    resolve(name, { ...options, all: true }, (error, addresses) => {
      const refused = error ?? refusalOf(addresses, rules);
      const [first] = refused ? [] : addresses;
      if (refused || !first) return done(refused ?? createLookupError('ENOTFOUND'), []);
      if (options.all) done(null, addresses);
      else done(null, first.address, first.family);
    });
  };
}

const refusalOf = (addresses: LookupAddress[], rules: AddressRules): NodeJS.ErrnoException | undefined =>
  addresses.every(({ address }) => isAllowedAddress(address, rules))
    ? undefined
    : createLookupError('EPRIVATE');

const createLookupError = (code: string): NodeJS.ErrnoException =>
  Object.assign(new Error('The name leads to no address that may be called.'), { code });

// A reply's body as an async sequence that can be returned early, decoded where it is compressed.

/**
 * Readers return at `[DONE]`, shortly before the reply ends. Waiting this long for the end keeps the
 * connection reusable.
 */
const lingerMs = 100;

/** The bytes of a reply as the upstream meant them. No encoding is asked for; some proxies compress all the same. */
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
 * The bytes of a reply as they arrive. A failure rejects the pending read with a TransportError. An early
 * return does not wait for a pending read; it closes the connection unless the reply ends within `lingerMs`.
 */
function readBytes(reply: IncomingMessage, signal: AbortSignal): AsyncIterable<Uint8Array> {
  // Without a listener Node throws the error instead of keeping it for the next read.
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
              ? new TransportError('aborted', 'The call was given up while the reply was read.')
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
  // The remaining bytes are drained only after the iterator has released the stream.
  const released = reads.return?.() ?? Promise.resolve();
  released.then(
    () => reply.resume(),
    () => reply.destroy(),
  );
}

const flush = constants.Z_SYNC_FLUSH;

/** By the name of the encoding; the first byte tells the two forms of `deflate` apart. */
const decoders: Record<string, (first: number) => Transform> = {
  gzip: () => createGunzip({ flush }),
  'x-gzip': () => createGunzip({ flush }),
  deflate: (first) => ((first & 0x0f) === 8 ? createInflate({ flush }) : createInflateRaw({ flush })),
  br: () => createBrotliDecompress({ flush: constants.BROTLI_OPERATION_FLUSH }),
};

const createEncodingError = (): TransportError =>
  new TransportError('encoding', 'The reply has an encoding that cannot be read.');

/**
 * Decodes a compressed reply as it arrives: what a read brought goes on before the next read, and a little at a time, so the
 * reader bounds what a small reply can become. Throws a TransportError: that of the reads, or `encoding`. An early return ends
 * the reads early too.
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
