/** Limits the time to connect, and classifies a failure by the stage that the request had reached. */
import type { ClientRequest } from 'node:http';
import type { Socket } from 'node:net';
import { TransportError } from '../../upstreams/exchange.ts';
import { connectFault } from './connect-fault.ts';

/**
 * A kept connection was closed before any byte of a reply arrived. The request can be sent again on a new
 * connection.
 */
export class StaleConnection extends TransportError {
  constructor() {
    super('reset', 'A kept connection was closed by the other side.');
  }
}

/**
 * Returns what classifies a failure by the stage that was reached. Messages hold codes, never foreign text. `timeoutMs`
 * limits connecting, including TLS.
 */
export function watchConnection(
  request: ClientRequest,
  { secure, timeoutMs }: { secure: boolean; timeoutMs: number },
): (error: Error) => TransportError {
  let socket: Socket | undefined;
  let bytesReadBefore = 0;
  let connected = false;
  let handshaking = false;
  const late = () =>
    new TransportError('connect', `No connection within ${timeoutMs} ms.`, { fault: 'timeout' });
  const timer = setTimeout(() => request.destroy(late()), timeoutMs);
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
  return (error) => {
    if (error instanceof TransportError) return error;
    const code = 'code' in error && typeof error.code === 'string' ? error.code : 'unknown';
    if (!connected) {
      const facts = { code, fault: connectFault(code, { handshaking }) };
      return new TransportError('connect', `No connection (${code}).`, facts);
    }
    const silent = socket?.bytesRead === bytesReadBefore;
    const closed = code === 'ECONNRESET' || code === 'EPIPE';
    if (request.reusedSocket && silent && closed) return new StaleConnection();
    return new TransportError('reset', `The connection broke (${code}).`, { code });
  };
}
