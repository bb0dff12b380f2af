import { connect } from 'node:net';
import { text } from 'node:stream/consumers';

/** Writes bytes to a port. Resolves with all bytes received until the other side closes. */
export function exchange(origin: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  socket.write(bytes);
  return text(socket);
}

export interface RawRequest {
  path?: string;
  version?: '1.0' | '1.1';
  headers?: Record<string, string>;
  body?: string;
}

/** A POST request in wire format. */
export function rawPost(key: string, { path, version = '1.1', headers = {}, body = '' }: RawRequest): string {
  const all = {
    host: 'relay.example',
    authorization: `Bearer ${key}`,
    'content-length': String(Buffer.byteLength(body)),
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST ${path ?? '/v1/chat/completions'} HTTP/${version}\r\n${lines.join('')}\r\n${body}`;
}
