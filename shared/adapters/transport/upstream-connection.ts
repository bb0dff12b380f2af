/** Limits the time to connect, and classifies a failure by the stage that the request had reached. */
import type { ClientRequest } from 'node:http';
import type { Socket } from 'node:net';
import { TransportError, type ConnectFault } from '../../upstreams/exchange.ts';

/**
 * A kept connection was closed before any byte of a reply arrived. The request can be sent again on a new
 * connection.
 */
export class StaleConnection extends TransportError {
  constructor() {
    super('reset', 'A kept connection was closed by the other side.');
  }
}

export interface ConnectionWatch {
  /**
   * Classifies a failure by the stage that the request had reached. Messages hold codes, never foreign text.
   */
  explain(error: Error): TransportError;
}

/** `timeoutMs` limits connecting, including TLS. */
export function watchConnection(
  request: ClientRequest,
  { secure, timeoutMs }: { secure: boolean; timeoutMs: number },
): ConnectionWatch {
  let socket: Socket | undefined;
  let bytesReadBefore = 0;
  let connected = false;
  let handshaking = false;
  const timeUp = () =>
    new TransportError('connect', `No connection within ${timeoutMs} ms.`, { fault: 'timeout' });
  const timer = setTimeout(() => request.destroy(timeUp()), timeoutMs);
  const onConnected = () => {
    connected = true;
    clearTimeout(timer);
  };
  request.once('close', () => clearTimeout(timer));
  request.once('socket', (given) => {
    socket = given;
    bytesReadBefore = given.bytesRead;
    if (request.reusedSocket) return onConnected();
    given.once('connect', () => {
      handshaking = secure;
    });
    given.once(secure ? 'secureConnect' : 'connect', onConnected);
  });
  return {
    explain(error) {
      if (error instanceof TransportError) return error;
      const code = 'code' in error && typeof error.code === 'string' ? error.code : 'unknown';
      if (!connected) {
        const fault = handshaking ? tlsFault(code) : connectFaults[code];
        return new TransportError('connect', `No connection (${code}).`, { code, fault });
      }
      const silent = socket?.bytesRead === bytesReadBefore;
      const closed = code === 'ECONNRESET' || code === 'EPIPE';
      if (request.reusedSocket && silent && closed) return new StaleConnection();
      return new TransportError('reset', `The connection broke (${code}).`, { code });
    },
  };
}

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

function tlsFault(code: string): ConnectFault {
  if (code === 'CERT_HAS_EXPIRED') return 'tls_expired';
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'tls_host';
  return untrusted.test(code) ? 'tls_untrusted' : 'tls';
}
