/**
 * Sends requests to upstreams over kept connections. Does not follow redirects: a 3xx is a normal reply. Must
 * never connect to an address that is not public; only the local stack may connect to this machine.
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

/**
 * Closes idle connections. After a longer freeze of the function it closes them before they are used again.
 */
const idleConnectionMs = 60_000;

export interface TransportOptions extends AddressRules {
  /** How names are resolved. Absent: by the system. */
  resolve?: Resolve;
  /** Signs the requests that need it. Absent: no request is signed. */
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
  const request = open(call, secure);
  const explain = watchConnection(request, { secure, timeoutMs: call.connectTimeoutMs });
  const replied = new Promise<UpstreamReply>((resolve, reject) => {
    const giveUp = () => request.destroy();
    signal.addEventListener('abort', giveUp);
    request.once('close', () => signal.removeEventListener('abort', giveUp));
    // Stays attached after the reply's head, to catch late errors.
    request.on('error', (error) => reject(signal.aborted ? givenUp() : explain(error)));
    // Node closes the request without an error when the reply is an unrequested 101.
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
  });
  // Outside of the functions above, which live as long as the reply: they would keep the body.
  // As a text it leaves in one write with the head.
  request.end(call.body);
  return replied;
}

const givenUp = (): TransportError => new TransportError('aborted', 'The call was given up.');

function open({ method = 'POST', url, agent, body, headers }: Call, secure: boolean): ClientRequest {
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
function checkedUrl(text: string, rules: AddressRules): URL {
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
