/** The local stack's ports for programs reject requests that web pages can send, and accept those of tools. */
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json, text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTablesPort } from '../../infra/local/host/loopback.ts';

/** Like the emulator, it answers everybody. */
const emulator = createServer((asked, response) => {
  void text(asked).then((body) =>
    response
      .writeHead(200, { 'access-control-allow-origin': '*', 'content-type': 'application/x-amz-json-1.0' })
      .end(JSON.stringify({ body, host: asked.headers.host, target: asked.headers['x-amz-target'] })),
  );
});
const tables = createTablesPort();
let port: number;

beforeAll(async () => {
  port = await tables.listen(0);
});
afterAll(async () => {
  await tables.close();
  emulator.close();
});

function send(headers: Record<string, string>, method = 'POST') {
  return new Promise<{ status: number | undefined; headers: object; body: unknown }>((resolve, reject) => {
    const sent = request({ port, method, headers: { 'x-amz-target': 'ListTables', ...headers } });
    sent.once('response', (answer) => {
      void json(answer).then((body) => resolve({ status: answer.statusCode, headers: answer.headers, body }));
    });
    sent.on('error', reject);
    sent.end(method === 'POST' ? '{}' : undefined);
  });
}

describe('the port of the tables', () => {
  it('asks to retry until the emulator runs', async () => {
    expect(await send({})).toMatchObject({
      status: 503,
      body: { __type: expect.stringContaining('InternalServerError') as string },
    });
    await new Promise<void>((listening) => emulator.listen(0, '127.0.0.1', listening));
    tables.open(`http://127.0.0.1:${(emulator.address() as AddressInfo).port}`);
    expect((await send({})).status).toBe(200);
  });

  it.each([
    ['a page of another site', { origin: 'https://evil.example' }],
    ['a page without an origin', { origin: 'null' }],
    ['a page of this machine', { origin: 'http://127.0.0.1:8000' }],
    ['a browser that sends no origin', { 'sec-fetch-site': 'cross-site' }],
    ['a name that resolves to this machine (DNS rebinding)', { host: 'evil.example:8000' }],
    ['a name below localhost', { host: 'evil.localhost:8000' }],
    ['a name with our prefix', { host: '127.0.0.1.evil.example' }],
  ])('rejects %s', async (_who, headers) => {
    for (const method of ['POST', 'OPTIONS', 'GET']) {
      const { status, headers: answered, body } = await send(headers, method);
      expect([status, body]).toMatchObject([403, { __type: 'AccessDeniedException' }]);
      expect(answered).not.toHaveProperty('access-control-allow-origin');
    }
  });

  it.each(['127.0.0.1:8000', 'localhost', 'localhost:9000', '[::1]:8000', 'LOCALHOST:1'])(
    'accepts a program that calls it %s, and allows no page to read the answer',
    async (host) => {
      const { status, headers, body } = await send({ host });
      expect(status).toBe(200);
      expect(body).toEqual({
        body: '{}',
        host: `127.0.0.1:${(emulator.address() as AddressInfo).port}`,
        target: 'ListTables',
      });
      expect(headers).not.toHaveProperty('access-control-allow-origin');
    },
  );

  it('accepts Node’s fetch, which sends Sec-Fetch-Mode', async () => {
    expect((await fetch(`http://localhost:${port}`, { method: 'POST', body: '{}' })).status).toBe(200);
  });
});
