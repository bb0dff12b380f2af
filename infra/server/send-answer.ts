/** Sends an answer of the relay over a connection of Node's server. */
import type { ServerResponse } from 'node:http';
import { writeBody } from '../../shared/adapters/lambda/streamed-body.ts';
import type { RelayResponse } from '../../shared/relay/http/http.ts';

export interface Sending {
  /** The connection takes no further request. */
  closes: boolean;
  onFault: (error: unknown) => void;
}

/** Resolves when the connection has everything, or is broken. Status and headers leave at once. */
export async function send(
  response: ServerResponse,
  answer: RelayResponse,
  { closes, onFault }: Sending,
): Promise<void> {
  const { body, headers, status } = answer;
  const isWhole = typeof body === 'string' && body !== '';
  if (!response.destroyed) {
    response.writeHead(status, {
      ...headers,
      ...(isWhole && { 'content-length': Buffer.byteLength(body) }),
      ...(closes && { connection: 'close' }),
    });
    if (!isWhole) response.flushHeaders();
  }
  await writeBody(response, answer, onFault);
}
