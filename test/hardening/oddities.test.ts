import { beforeAll, describe, expect, test } from 'vitest';
import { textStream } from '../support/upstream-scripts.ts';
import { expectErrorBody, framesOf, streamedText } from './answers.ts';
import { hardeningStack } from './hardening-stack.ts';
import { exchange, rawPost } from './raw-client.ts';
import type { WatchedStack } from './watched-stack.ts';

let stack: WatchedStack;

beforeAll(async () => {
  const hardening = await hardeningStack();
  stack = hardening.stack;
  hardening.upstream.script((call, reply) => {
    const [{ content }] = call.body['messages'] as [{ content: string }];
    return textStream(`You said ${content}.`)(call, reply);
  });
});

const say = (content: string, more: object = {}): string =>
  JSON.stringify({ model: 'plain', messages: [{ role: 'user', content }], ...more });

describe('a key', () => {
  test.each([
    ['in lower case', (key: string) => `bearer ${key}`],
    ['in upper case', (key: string) => `BEARER ${key}`],
    ['after several spaces', (key: string) => `Bearer    ${key}`],
    ['with trailing spaces', (key: string) => `Bearer ${key}   `],
  ])('is accepted %s', async (_name, authorization) => {
    const response = await stack.post(say('yes'), { headers: { authorization: authorization(stack.key) } });
    expect(response.status).toBe(200);
    await response.text();
  });

  test('is rejected next to another one', async () => {
    const headers = { Authorization: `Bearer ${stack.key}`, connection: 'close' };
    const request = rawPost(stack.key, { headers, body: say('no') });
    expect(await exchange(stack.origin, request)).toMatch(/^HTTP\/1\.1 401 /);
  });

  test.each([
    ['alone', (key: string) => ({ authorization: key })],
    ['in quotes', (key: string) => ({ authorization: `Bearer "${key}"` })],
    ['as a password', (key: string) => ({ authorization: `Basic ${btoa(`user:${key}`)}` })],
    ['in the header of another API', (key: string) => ({ authorization: '', 'x-api-key': key })],
  ])('is rejected %s, and the error explains how to send it', async (_name, headers) => {
    const response = await stack.post(say('no'), { headers: headers(stack.key) });
    const text = await response.text();
    expect(response.status).toBe(401);
    expectErrorBody(text, 'authentication_error', 'invalid_api_key');
    expect(text).toContain('Authorization: Bearer sk-');
  });
});

describe('a path', () => {
  test.each([
    '/v1%2Fchat%2Fcompletions',
    '/v1/%63hat/completions',
    '//v1/chat/completions',
    '/v1//chat/completions',
    '/v1/chat/completions/',
    '/v1/chat/../chat/completions',
    '/chat/completions',
    '/v1/v1/chat/completions',
    '/openai/v1/chat/completions',
  ])('%s is unknown, and the error names the right address', async (path) => {
    const answer = await exchange(
      stack.origin,
      rawPost(stack.key, { path, body: say('lost'), headers: { connection: 'close' } }),
    );
    expect(answer).toMatch(/^HTTP\/1\.1 404 /);
    expect(answer).toContain('"code":"not_found"');
    expect(answer).toContain('http://relay.example/v1/chat/completions');
  });

  test('that is escaped is named in the error', async () => {
    const response = await fetch(`${stack.origin}/v1%2Fchat%2Fcompletions`, { method: 'POST', body: '{}' });
    expect(await response.text()).toContain('%2F');
  });

  test('may have a query, which is ignored', async () => {
    const path = '/v1/chat/completions?stream=true&model=nobody&%00=%ff';
    const headers = { connection: 'close' };
    const answer = await exchange(stack.origin, rawPost(stack.key, { path, body: say('query'), headers }));
    expect(answer).toContain('You said query.');
  });
});

describe('a connection', () => {
  test('may carry pipelined requests: answers arrive in order', async () => {
    const answer = await exchange(
      stack.origin,
      rawPost(stack.key, { body: say('one') }) +
        rawPost(stack.key, { body: '{' }) +
        rawPost(stack.key, { body: say('two'), headers: { connection: 'close' } }),
    );
    expect(answer.match(/HTTP\/1\.1 \d+|You said \w+|invalid_json/g)).toEqual([
      'HTTP/1.1 200',
      'You said one',
      'HTTP/1.1 400',
      'invalid_json',
      'HTTP/1.1 200',
      'You said two',
    ]);
  });

  test('with HTTP/1.0 gets a stream without chunked encoding', async () => {
    const body = say('old', { stream: true });
    const answer = await exchange(stack.origin, rawPost(stack.key, { version: '1.0', body }));
    const [head = '', text = ''] = answer.split('\r\n\r\n');
    expect(head.toLowerCase()).not.toContain('transfer-encoding');
    expect(streamedText(framesOf(text))).toBe('You said old.');
  });

  test('that expects 100 Continue gets it', async () => {
    const headers = { expect: '100-continue', connection: 'close' };
    const answer = await exchange(stack.origin, rawPost(stack.key, { body: say('go on'), headers }));
    expect(answer).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /);
    expect(answer).toContain('You said go on.');
  });
});

describe('a method', () => {
  test.each(['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
    '%s is rejected with the name of the right one',
    async (method) => {
      const response = await fetch(`${stack.origin}/v1/chat/completions`, { method });
      expect(response.status).toBe(405);
      expect(response.headers.get('allow')).toBe('POST');
      expectErrorBody(await response.text(), 'invalid_request_error', 'method_not_allowed');
    },
  );

  test.each<Record<string, string>>([
    { upgrade: 'websocket', connection: 'Upgrade, close', 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' },
    { 'openai-beta': 'responses_websockets=2026-02-06', connection: 'close' },
  ])('GET that requests a websocket gets 426, after which Codex continues over HTTP: %j', async (headers) => {
    const lines = Object.entries({ host: 'relay', ...headers }).map(([name, value]) => `${name}: ${value}`);
    const answer = await exchange(
      stack.origin,
      `GET /v1/responses HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 426 /);
    expect(answer).toContain('"code":"websocket_not_offered"');
  });

  test('HEAD is answered like GET, without a body', async () => {
    const head = await fetch(`${stack.origin}/v1/models`, { method: 'HEAD' });
    expect(head.status).toBe(200);
    expect(await head.text()).toBe('');
    const refused = await fetch(`${stack.origin}/v1/chat/completions`, { method: 'HEAD' });
    expect(refused.status).toBe(405);
  });
});
