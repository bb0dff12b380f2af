import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { createServer as createRawServer, type Server, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { createHttpsTransport } from '../../../../shared/adapters/transport/https-transport.ts';
import type { UpstreamReply, UpstreamRequest } from '../../../../shared/upstreams/exchange.ts';
import { countSocketWrites } from '../../../support/socket-writes.ts';
import { listening } from '../../../support/listening.ts';
import { selfSigned } from './self-signed.ts';

const never = new AbortController().signal;

const listen = async (server: Server, scheme?: string): Promise<string> =>
  `${await listening(server, scheme)}/v1`;

const serve = (listener: RequestListener): Promise<string> => listen(createServer(listener));

const post = (url: string, more: Partial<UpstreamRequest> = {}): UpstreamRequest => ({
  url,
  headers: { 'content-type': 'application/json' },
  body: '{"a":"ü"}',
  connectTimeoutMs: 5000,
  ...more,
});

async function read(reply: UpstreamReply): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const bytes of reply.body) parts.push(bytes);
  return Buffer.concat(parts).toString();
}

describe('a request', () => {
  test('is a POST unless it asks for a GET', async () => {
    const url = await serve((request, response) => void response.end(request.method));
    const transport = createHttpsTransport({ local: true });
    expect(await read(await transport.send(post(url), never))).toBe('POST');
    expect(await read(await transport.send(post(url, { method: 'GET', body: '' }), never))).toBe('GET');
  });

  test('is sent in one write to its connection', async () => {
    const url = await serve((request, response) => void request.resume().on('end', () => response.end('ok')));
    const transport = createHttpsTransport({ local: true });
    await read(await transport.send(post(url), never));
    const writes = countSocketWrites(Number(new URL(url).port));
    await read(await transport.send(post(url, { body: '{"a":"ü"}'.repeat(2_000) }), never));
    expect(writes.count).toBe(1);
  });

  test("has the caller's headers and body and a length, and asks for no compression", async () => {
    const seen = Promise.withResolvers<{ request: IncomingMessage; body: string }>();
    const url = await serve((request, response) => {
      void text(request).then((body) => seen.resolve({ request, body }));
      response.end('ok');
    });
    const headers = { authorization: 'Bearer x', 'content-type': 'application/json' };
    expect(await read(await createHttpsTransport({ local: true }).send(post(url, { headers }), never))).toBe(
      'ok',
    );
    const { request, body } = await seen.promise;
    expect(body).toBe('{"a":"ü"}');
    expect(`${request.method} ${request.url}`).toBe('POST /v1');
    expect(request.headers).toEqual({
      ...headers,
      'accept-encoding': 'identity',
      'content-length': '10',
      connection: 'keep-alive',
      host: new URL(url).host,
    });
  });
});

describe('a reply', () => {
  test('is rejected as reset when the connection breaks in the middle', async () => {
    const url = await serve((_request, response) => {
      response.write('half', () => response.destroy());
    });
    const reply = await createHttpsTransport({ local: true }).send(post(url), never);
    await expect(read(reply)).rejects.toMatchObject({ kind: 'reset' });
  });

  test.each(['before the first read', 'after the first read', 'while a read waits'])(
    'closes the connection when it is cancelled early %s',
    async (when) => {
      const { promise: closed, resolve: onClosed } = Promise.withResolvers<void>();
      const url = await serve((_request, response) => {
        response.once('close', onClosed);
        response.write('first');
      });
      const reply = await createHttpsTransport({ local: true }).send(post(url), never);
      const reads = reply.body[Symbol.asyncIterator]();
      if (when !== 'before the first read') await reads.next();
      const waiting = when === 'while a read waits' ? reads.next() : undefined;
      await reads.return?.();
      await closed;
      expect(await (waiting ?? reads.next())).toEqual({ done: true, value: undefined });
    },
  );

  test('keeps the connection for the next request when only its end is unread', async () => {
    const ports: (number | undefined)[] = [];
    const url = await serve((request, response) => {
      ports.push(request.socket.remotePort);
      response.end('data: [DONE]\n\n');
    });
    const transport = createHttpsTransport({ local: true });
    for (let calls = 0; calls < 2; calls += 1) {
      const reply = await transport.send(post(url), never);
      const reads = reply.body[Symbol.asyncIterator]();
      expect(String((await reads.next()).value)).toContain('[DONE]');
      await reads.return?.();
      await new Promise(setImmediate);
    }
    expect(ports[1]).toBe(ports[0]);
  });
});

describe('a failed connection', () => {
  test('is named: a TLS handshake that never ends fails after the connect time-out', async () => {
    const url = await listen(createRawServer(), 'https');
    const sent = createHttpsTransport({ local: true }).send(post(url, { connectTimeoutMs: 50 }), never);
    await expect(sent).rejects.toMatchObject({ kind: 'connect', message: 'No connection within 50 ms.' });
  });

  test('is not assumed once connected: the response headers may take longer', async () => {
    const { key, cert } = selfSigned();
    setDefaultCACertificates([...getCACertificates('default'), cert]);
    const pending = Promise.withResolvers<ServerResponse>();
    const server = createSecureServer({ key, cert }, (_request, response) => pending.resolve(response));
    const url = await listen(server, 'https');
    const sent = createHttpsTransport({ local: true }).send(post(url, { connectTimeoutMs: 1000 }), never);
    const response = await pending.promise;
    setTimeout(() => response.end('late'), 1200);
    expect(await read(await sent)).toBe('late');
  });
});

describe('a cancelled request', () => {
  test('closes the connection while waiting for the response headers', async () => {
    const stop = new AbortController();
    const { promise: closed, resolve: onClosed } = Promise.withResolvers<void>();
    const url = await serve((_request, response) => {
      response.once('close', onClosed);
      stop.abort();
    });
    await expect(createHttpsTransport({ local: true }).send(post(url), stop.signal)).rejects.toMatchObject({
      kind: 'aborted',
    });
    await closed;
  });

  test('closes the connection while reading the body', async () => {
    const stop = new AbortController();
    const { promise: closed, resolve: onClosed } = Promise.withResolvers<void>();
    const url = await serve((_request, response) => {
      response.once('close', onClosed);
      response.write('first');
    });
    const reply = await createHttpsTransport({ local: true }).send(post(url), stop.signal);
    const reads = reply.body[Symbol.asyncIterator]();
    await reads.next();
    const waiting = reads.next();
    stop.abort();
    await expect(waiting).rejects.toMatchObject({ kind: 'aborted' });
    await closed;
  });
});

/** Answers the first request of each connection; the test handles later ones. */
async function serveOnce(onSecond: (request: IncomingMessage, response: ServerResponse) => void) {
  const seen: number[] = [];
  const served = new Map<Socket, number>();
  const url = await serve((request, response) => {
    const number = (served.get(request.socket) ?? 0) + 1;
    served.set(request.socket, number);
    seen.push(number);
    request.resume();
    if (number === 1) response.end('ok');
    else onSecond(request, response);
  });
  return { url, seen, connections: () => served.size };
}

/** One answered request, with its connection back in the pool. */
async function warm(url: string) {
  const transport = createHttpsTransport({ local: true });
  await read(await transport.send(post(url), never));
  await new Promise(setImmediate);
  return transport;
}

describe('a kept connection', () => {
  test('that is dead is replaced once by a new connection', async () => {
    const { url, seen, connections } = await serveOnce((request) => request.socket.destroy());
    const transport = await warm(url);
    expect(await read(await transport.send(post(url), never))).toBe('ok');
    expect(seen).toEqual([1, 2, 1]);
    expect(connections()).toBe(2);
  });

  test('that is dead is never replaced by another idle connection of the same age', async () => {
    const { url, seen } = await serveOnce((request) => request.socket.destroy());
    const transport = createHttpsTransport({ local: true });
    const replies = await Promise.all([transport.send(post(url), never), transport.send(post(url), never)]);
    await Promise.all(replies.map(read));
    await new Promise(setImmediate);
    expect(await read(await transport.send(post(url), never))).toBe('ok');
    expect(seen).toEqual([1, 1, 2, 1]);
  });

  test('that breaks after a byte of the reply fails: the upstream may have worked on the request', async () => {
    const { url, seen } = await serveOnce((request) => request.socket.end('HTTP/1.1 2'));
    const transport = await warm(url);
    await expect(transport.send(post(url), never)).rejects.toMatchObject({ kind: 'reset' });
    expect(seen).toEqual([1, 2]);
  });

  test('differs from a fresh connection, whose failure is never retried', async () => {
    let requests = 0;
    const url = await serve((request) => {
      requests += 1;
      request.socket.destroy();
    });
    await expect(createHttpsTransport({ local: true }).send(post(url), never)).rejects.toMatchObject({
      kind: 'reset',
    });
    expect(requests).toBe(1);
  });
});
