/**
 * Sends requests to upstreams over kept connections. Redirects are not followed: a 3xx is a reply like any other. Must never connect
 * to an address that is not public, nor (but on the local stack) to this machine.
 */
import { Agent as HttpAgent, request as requestOverHttp, type ClientRequest } from 'node:http';
import { isIP } from 'node:net';
import { Agent as HttpsAgent, request as requestOverHttps } from 'node:https';
import type { UpstreamTransport } from '../../relay/ports/upstream-transport.ts';
import { TransportError, type UpstreamReply, type UpstreamRequest } from '../../upstreams/exchange.ts';
import { isLoopbackAddress } from '../../upstreams/public-address.ts';
import { isAllowedAddress, publicLookup, type AddressRules, type Resolve } from './public-lookup.ts';
import type { RequestSigner } from './request-signer.ts';
import { StaleConnection, watchConnection } from './upstream-connection.ts';
import { replyBody } from './upstream-body.ts';

/** This timer closes idle connections of a function that was frozen for longer, before it uses one. */
const idleConnectionMs = 60_000;

export interface TransportOptions extends AddressRules {
  /** How names are resolved; by the system if absent. */
  resolve?: Resolve;
  /** Signs the requests that ask for it; absent: they are sent as they are. */
  sign?: RequestSigner;
}

export function httpsUpstreamTransport({ local, resolve, sign }: TransportOptions): UpstreamTransport {
  const lookup = publicLookup({ local }, resolve);
  const agentOptions = { keepAlive: true, timeout: idleConnectionMs, lookup };
  const agents = { http: new HttpAgent(agentOptions), https: new HttpsAgent(agentOptions) };
  return {
    async send(request, signal) {
      const url = checkedUrl(request.url, { local });
      const agent = url.protocol === 'https:' ? agents.https : agents.http;
      const { awsScope: scope } = request;
      const headers = scope && sign ? await sign(request, scope) : request.headers;
      const call = { ...request, url, agent, headers, bytes: Buffer.from(request.body) };
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

interface Call extends Pick<UpstreamRequest, 'method' | 'headers' | 'connectTimeoutMs'> {
  url: URL;
  agent: HttpAgent;
  bytes: Buffer;
}

function sendOnce(call: Call, signal: AbortSignal): Promise<UpstreamReply> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) throw givenUp();
    const secure = call.url.protocol === 'https:';
    const request = open(call, secure);
    const connection = watchConnection(request, { secure, timeoutMs: call.connectTimeoutMs });
    const giveUp = () => request.destroy();
    signal.addEventListener('abort', giveUp);
    request.once('close', () => signal.removeEventListener('abort', giveUp));
    // Stays for the life of the request: after the head it only catches a late error.
    request.on('error', (error) => reject(signal.aborted ? givenUp() : connection.explain(error)));
    // Node closes without an error when the reply is a 101, which the request did not ask for.
    const unanswered = () => reject(new TransportError('reset', 'The connection closed without a reply.'));
    request.once('close', unanswered);
    request.once('response', (reply) => {
      request.off('close', unanswered);
      resolve({
        status: reply.statusCode ?? 0,
        headers: Object.fromEntries(
          Object.entries(reply.headers).map(([name, value]) => [name, value?.toString()]),
        ),
        body: replyBody(reply, signal),
      });
    });
    request.end(call.bytes);
  });
}

const givenUp = (): TransportError => new TransportError('aborted', 'The call was given up.');

function open({ method = 'POST', url, agent, bytes, headers }: Call, secure: boolean): ClientRequest {
  const options = {
    method,
    agent,
    headers: { ...headers, 'accept-encoding': 'identity', 'content-length': String(bytes.length) },
  };
  try {
    return secure ? requestOverHttps(url, options) : requestOverHttp(url, options);
  } catch {
    // Node throws at headers that HTTP cannot carry.
    throw new TransportError('connect', 'The request holds a header that cannot be sent.');
  }
}

/**
 * Plain http never leaves the machine, whatever a configuration says. An address in the place of a name is looked at
 * here, since there is nothing to resolve.
 */
function checkedUrl(text: string, rules: AddressRules): URL {
  const url = URL.parse(text);
  const host = url?.hostname.replace(/^\[|\]$/g, '') ?? '';
  const loopback = host === 'localhost' || isLoopbackAddress(host);
  if (!url || !(url.protocol === 'https:' || (url.protocol === 'http:' && loopback))) {
    throw new TransportError('connect', 'The address is neither https nor on loopback.');
  }
  if (isIP(host) !== 0 && !isAllowedAddress(host, rules)) {
    throw new TransportError('connect', 'The address is not public.');
  }
  return url;
}

/** When one kept connection to a host is dead, mostly all idle ones are. */
function dropIdleConnections(agent: HttpAgent, { hostname, port, protocol }: URL): void {
  const host = hostname.replace(/^\[|\]$/g, '');
  const prefix = `${host}:${port || (protocol === 'https:' ? 443 : 80)}:`;
  for (const [name, sockets] of Object.entries(agent.freeSockets)) {
    if (name.startsWith(prefix)) for (const socket of sockets ?? []) socket.destroy();
  }
}
