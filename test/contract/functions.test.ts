import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { UrlResponseHead } from '../../infra/local/lambda/function-url.ts';
import { keyHash } from '../../shared/wire/ids.ts';
import { urlEvent, type EventParts } from '../unit/adapters/lambda/url-event.ts';
import { startFunctions, type FunctionHost } from './function-host.ts';

/** Each failure has a model on its own channel, because a channel is skipped for a while after a few failures. */
const fragile = ['fragile-0', 'fragile-1', 'fragile-2', 'fragile-3'];

let host: FunctionHost;
let called = Promise.withResolvers<ServerResponse>();
/** How the upstream handles each request. */
let onCall: (response: ServerResponse) => void;
const upstream = createServer((request, response) => {
  request.resume();
  onCall(response);
});

beforeAll(async () => {
  await once(upstream.listen(0, '127.0.0.1'), 'listening');
  host = await startFunctions();
  for (const model of ['demo', ...fragile])
    await host.put('channels', {
      id: model,
      endpoint: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`,
      secret: 'env:UPSTREAM_KEY',
      models: [model],
      state: true,
    });
  await host.put('keys', { hash: keyHash('sk-contract'), account: 'acme', hint: 'sk-...act' });
});
afterAll(async () => {
  await host.stop();
  upstream.close().closeAllConnections();
});
beforeEach(() => {
  called = Promise.withResolvers();
  onCall = called.resolve;
});

const fromCloudFront = { 'x-relay-origin': 'cloudfront', 'x-forwarded-host': '127.0.0.1:8787' };
const withKey = { ...fromCloudFront, authorization: 'Bearer sk-contract' };
const bodyFor = (model: string): string =>
  JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'canary' }] });
const chat = (more: EventParts = {}) => urlEvent({ headers: withKey, body: bodyFor('demo'), ...more });

const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({
    id: 'x',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'demo',
    choices: [{ index: 0, delta, finish_reason: finish }],
  })}\n\n`;
const eventStream = { 'content-type': 'text/event-stream' };

/** Reads until the text so far contains the wanted text. */
async function readUntil(texts: AsyncIterator<string>, wanted: string): Promise<string> {
  let text = '';
  while (!text.includes(wanted)) {
    const next = await texts.next();
    if (next.done) throw new Error(`ended without ${wanted}: ${text}`);
    text += next.value;
  }
  return text;
}

/** Returns the log line of a request. */
const requestLine = ({ headers }: UrlResponseHead) =>
  host.line((text) => text.includes(String(headers?.['x-request-id'])) && text.includes('duration_ms'));

const environmentsOf = (name: string) => host.lines.filter((line) => line.startsWith(`environment ${name}#`));

const get = (path: string, method = 'GET') => urlEvent({ method, path, headers: fromCloudFront });

describe('the chat function under AWS’s runtime client', () => {
  test('streams each piece as it arrives, and sends status and headers with the first', async () => {
    const answer = host.stream(chat());
    const response = await called.promise;
    response.writeHead(200, eventStream);
    response.write(chunk({ role: 'assistant', content: 'first' }));
    const { head, texts } = await answer;
    expect(head.statusCode).toBe(200);
    expect(head.headers).toMatchObject({
      'content-type': expect.stringContaining('text/event-stream'),
      'x-request-id': expect.stringMatching(/^[0-9a-z]{26}$/),
    });
    await readUntil(texts, 'first');
    response.write(chunk({ content: 'second' }));
    await readUntil(texts, 'second');
    response.end(`${chunk({}, 'stop')}data: [DONE]\n\n`);
    await readUntil(texts, '[DONE]');
    expect(await texts.next()).toMatchObject({ done: true });
    expect(await requestLine(head)).toContain('"outcome":"completed"');
  });

  test.each<[string, object, number, string]>([
    [
      'no origin secret',
      urlEvent({ headers: { authorization: 'Bearer sk-contract' } }),
      403,
      'origin_denied',
    ],
    ['no key', chat({ headers: fromCloudFront }), 401, 'invalid_api_key'],
    ['an empty body', chat({ body: '' }), 400, 'empty_body'],
    [
      'no UTF-8',
      chat({ body: Buffer.from([0x7b, 0xff]).toString('base64'), base64: true }),
      400,
      'invalid_encoding',
    ],
    ['no JSON', chat({ body: '{' }), 400, 'invalid_json'],
    ['deep JSON', chat({ body: '['.repeat(100_000) }), 400, 'json_too_deep'],
    ['7 MB', chat({ body: `"${'x'.repeat(7_000_000)}"` }), 413, 'request_too_large'],
    ['another path', chat({ path: '/v1/chat' }), 404, 'not_found'],
    ['HEAD', chat({ method: 'HEAD' }), 405, ''],
  ])('answers %s', async (_what, event, status, code) => {
    onCall = () => expect.unreachable('the upstream was called');
    const { head, body } = await host.streamAll(event);
    expect(head.statusCode).toBe(status);
    expect(head.headers?.['x-request-id']).toMatch(/^[0-9a-z]{26}$/);
    expect(body).toContain(code);
    expect(body === '').toBe(code === '');
  });

  const failures: [string, (response: ServerResponse) => void][] = [
    ['closes without an answer', (response) => response.socket?.destroy()],
    [
      'closes in the middle',
      (response) => response.writeHead(200, eventStream).write('data: {', () => response.destroy()),
    ],
    [
      'answers HTML',
      (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>canary'),
    ],
    ['answers 500', (response) => response.writeHead(500).end('canary')],
  ];
  test.each(failures.map(([what, fail], at) => [what, fail, `fragile-${at}`] as const))(
    'survives an upstream that %s',
    async (_what, fail, model) => {
      // Every request fails, because the relay retries once when a kept connection was closed.
      onCall = fail;
      const { head, body } = await host.streamAll(chat({ body: bodyFor(model) }));
      expect(head.statusCode).toBe(502);
      expect(JSON.parse(body)).toMatchObject({ error: { type: 'upstream_error' } });
      expect(environmentsOf('chat')).toHaveLength(1);
    },
  );

  test("reads the upstream to its end when the runtime's connection resets, and serves the next request", async () => {
    const answer = host.stream(chat());
    const response = await called.promise;
    response.writeHead(200, eventStream);
    response.write(chunk({ role: 'assistant', content: 'said' }));
    const { head, texts, connection } = await answer;
    await readUntil(texts, 'said');
    connection.resetAndDestroy();
    const served = vi.fn<() => void>();
    const next = host.streamAll(chat({ headers: fromCloudFront })).finally(served);
    // Send more than the sockets buffer, so the writes finish only if the relay still reads. Comments, because answer
    // text is limited.
    for (let pieces = 0; pieces < 64; pieces += 1)
      if (!response.write(`: ${'x'.repeat(100_000)}\n\n`)) await once(response, 'drain');
    // The invocation lasts until the upstream ends. Starting another function takes long enough to notice a next
    // invocation.
    await host.buffered(get('/health'));
    expect(served).not.toHaveBeenCalled();
    response.end(`${chunk({}, 'stop')}data: [DONE]\n\n`);
    expect((await next).head.statusCode).toBe(401);
    expect(await requestLine(head)).toContain('"end":"client_gone"');
    expect(environmentsOf('chat')).toHaveLength(1);
  });

  test('logs no prompt, answer or secret', () => {
    expect(host.lines.join('\n')).not.toMatch(/canary|sk-contract|cloudfront/);
  });
});

describe('the catalog function under AWS’s runtime client', () => {
  test('answers in one piece', async () => {
    const answer = await host.buffered(get('/v1/models'));
    expect(answer).toMatchObject({ statusCode: 200, headers: { 'content-type': 'application/json' } });
    expect(JSON.parse(answer.body)).toMatchObject({
      object: 'list',
      data: ['demo', ...fragile].map((id) => ({ id })),
    });
  });

  test('answers HEAD with status and headers only', async () => {
    expect(await host.buffered(get('/v1/models', 'HEAD'))).toMatchObject({ statusCode: 200, body: '' });
  });

  test('rejects requests that bypass the distribution', async () => {
    const answer = await host.buffered(urlEvent({ method: 'GET', path: '/v1/models' }));
    expect(answer).toMatchObject({ statusCode: 403, headers: { 'x-request-id': expect.any(String) } });
  });
});
