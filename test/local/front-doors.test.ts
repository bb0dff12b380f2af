/** One stack behind each front door: clients get the same answers, with the exceptions of docs/deploy.md. */
import { mkdtempSync, rmSync } from 'node:fs';
import { request as sendRequest, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { once } from 'node:events';
import { text as textOf } from 'node:stream/consumers';
import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createApp } from '../../infra/stack/create-app.ts';
import { expectDocumented } from '../openapi/exchange.ts';
import { synthesizeApp } from '../infra/synthesize.ts';
import { startLocalStack, type LocalStack } from '../support/local-stack.ts';

const doors = {
  'private-api': { frontDoor: 'private-api', vpcEndpointIds: ['vpce-0123456789abcdef0'] },
  ...(process.env['DOORS'] === 'every' && {
    'cloudfront-api': { frontDoor: 'cloudfront-api' },
    'an API with a domain': {
      frontDoor: 'api',
      domain: 'llm.example.com',
      certificateArn: 'arn:aws:acm:us-east-1:123456789012:certificate/12345678-1234-1234-1234-123456789012',
      region: 'us-east-1',
    },
  }),
};

const folder = mkdtempSync(join(tmpdir(), 'relay-doors-'));
const stacks = new Map<string, LocalStack>();

const start = async (door: string, env: Record<string, string>): Promise<void> =>
  void stacks.set(door, await startLocalStack({ env }));

beforeAll(async () => {
  const others = Object.entries(doors).map(([door, options]) => {
    const outputFolder = join(folder, door.replaceAll(' ', '-'));
    synthesizeApp(createApp({ outputFolder, bundlesFolder: resolve('dist'), options, validate: false }).app);
    return start(door, { RELAY_TEMPLATE_FOLDER: outputFolder });
  });
  await Promise.all([start('cloudfront', { RELAY_CONSOLE: '1' }), ...others]);
}, 120_000);

afterAll(async () => {
  await Promise.all([...stacks.values()].map((stack) => stack.stop()));
  rmSync(folder, { recursive: true });
});

interface Sent {
  method?: string;
  path?: string;
  headers?: Record<string, string | string[]>;
  body?: string | Buffer;
  /** Default: the demo key. */
  key?: string | undefined;
}

interface Got {
  status: number;
  headers: Record<string, unknown>;
  body: string;
}

const stackOf = (door: string): LocalStack => {
  const found = stacks.get(door);
  if (!found) throw new Error(`no stack behind ${door}`);
  return found;
};

async function ask(
  door: string,
  { method = 'POST', path = '/chat/completions', headers = {}, body, ...sent }: Sent,
): Promise<Got> {
  const { baseUrl, key } = stackOf(door);
  const authorization = 'key' in sent ? sent.key && `Bearer ${sent.key}` : `Bearer ${key}`;
  const given = { 'content-type': 'application/json', ...(authorization && { authorization }), ...headers };
  const asked = sendRequest(baseUrl + path, { method, headers: given });
  asked.end(body);
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  const got = { status: answer.statusCode ?? 0, headers: answer.headers, body: await textOf(answer) };
  const [plainPath = ''] = path.split('?');
  const named = Object.fromEntries(Object.entries(got.headers).map(([name, value]) => [name, String(value)]));
  expectDocumented({
    method,
    path: decodeURIComponent(`/v1${plainPath}`),
    body: typeof body === 'string' && got.status === 200 ? JSON.parse(body) : undefined,
    status: got.status,
    headers: named,
    text: got.body,
  });
  return got;
}

/** Headers of hops, or of the front door. */
const ofDoor =
  /^(date|connection|keep-alive|transfer-encoding|content-length|via|x-amzn-requestid|x-amz-apigw-id)$/;

/** Ids, times and addresses differ between any two calls; each stack has its own keys. */
const comparable = (door: string, { status, headers, body }: Got) => {
  const plain = (text: string): string =>
    text
      .replaceAll(stackOf(door).baseUrl, 'BASE')
      .replaceAll(new URL(stackOf(door).baseUrl).origin, 'ORIGIN')
      // How much the upstream had written when the answer began depends on the machine.
      .replace(/("type":"message_start".*"output_tokens":)\d+/, '$1COUNT')
      .replaceAll(/\b[\w-]{20,}\b/g, 'ID')
      .replaceAll(/\b1[789]\d{8}(\.\d+)?\b|\b20\d\d-[\d:.T-]+Z/g, 'TIME');
  const kept = Object.entries(headers).filter(([name]) => !ofDoor.test(name));
  return {
    status,
    body: plain(body),
    headers: Object.fromEntries(kept.map(([name, value]) => [name, plain(String(value))])),
  };
};

const chat = (more: object = {}) => ({
  model: 'demo-chat',
  messages: [{ role: 'user', content: 'Hello!' }],
  ...more,
});
const message = { model: 'demo-chat', max_tokens: 64, messages: [{ role: 'user', content: 'Hello!' }] };
const json = (body: object): string => JSON.stringify(body);
/** A body of this many bytes, mostly padding, because this test is not about token counts. */
const filled = (bytes: number): string => json(chat()).padEnd(bytes);
const megabyte = 1024 * 1024;

const same: Record<string, Sent> = {
  'a chat completion': { body: json(chat()) },
  'a chat completion, streamed': {
    body: json(chat({ stream: true, stream_options: { include_usage: true } })),
  },
  'a response': { path: '/responses', body: json({ model: 'demo-chat', input: 'Hello!' }) },
  'a response, streamed': {
    path: '/responses',
    body: json({ model: 'demo-chat', input: 'Hello!', stream: true }),
  },
  'a message': { path: '/messages', body: json(message) },
  'a message, streamed': { path: '/messages', body: json({ ...message, stream: true }) },
  'a body in gzip': { body: gzipSync(json(chat())), headers: { 'content-encoding': 'gzip' } },
  'a body in zstd': { body: zstdCompressSync(json(chat())), headers: { 'content-encoding': 'zstd' } },
  'a body in brotli': { body: brotliCompressSync(json(chat())), headers: { 'content-encoding': 'br' } },
  'a body in another encoding than its header': { body: 'no gzip', headers: { 'content-encoding': 'gzip' } },
  'a body of 6 MB, compressed': {
    body: gzipSync(filled(6 * megabyte)),
    headers: { 'content-encoding': 'gzip' },
  },
  'a body that unpacks to too much': {
    body: gzipSync(filled(7 * megabyte)),
    headers: { 'content-encoding': 'gzip' },
  },
  'a body of 4 MB': { body: filled(4 * megabyte) },
  'letters beyond ASCII': {
    body: json(chat({ messages: [{ role: 'user', content: 'Grüße 你好 🌍' }], n: 'ü' })),
  },
  'no body': {},
  'no key': { body: json(chat()), key: undefined },
  'a wrong key': { path: '/messages', body: json(message), key: 'sk-wrong' },
  'headers named like members of every object': {
    body: json(chat()),
    headers: Object.fromEntries(['__proto__', 'constructor', 'toString'].map((name) => [name, 'x'])),
  },
  'two keys': { body: json(chat()), key: undefined, headers: { authorization: ['Bearer a', 'Bearer b'] } },
  'an unknown model': { body: json(chat({ model: 'none' })) },
  'a wrong method': { method: 'DELETE' },
  'an unknown path': { method: 'GET', path: '/nothing/here' },
  'a path that only starts the same': { method: 'GET', path: '/chat' },
  'the list of models': { method: 'GET', path: '/models' },
  'the OpenAPI document': { method: 'GET', path: '/openapi.json', key: undefined },
  'one model, by an escaped name': { method: 'GET', path: '/models/demo%2Dchat' },
  'a query': {
    method: 'GET',
    path: '/models?limit=1&after_id=demo-chat',
    headers: { 'anthropic-version': '2023-06-01' },
  },
  'headers alone': { method: 'HEAD', path: '/models' },
  'a preflight of a browser': {
    method: 'OPTIONS',
    headers: { origin: 'https://a.example', 'access-control-request-method': 'POST' },
  },
};

describe.each(Object.keys(doors))('behind %s', (door) => {
  test.each(Object.entries(same))('%s gets the same answer as behind CloudFront', async (_, sent) => {
    const [usual, other] = await Promise.all([ask('cloudfront', sent), ask(door, sent)]);
    expect(usual.headers['x-request-id']).toMatch(/^[\w-]{20,}$/);
    expect(other.headers['x-request-id']).toMatch(/^[\w-]{20,}$/);
    expect(comparable(door, other)).toEqual(comparable('cloudfront', usual));
  });

  test('a body over 4.5 MB, compressed or not, is rejected by the front door in the API’s form', async () => {
    const body = filled(5 * megabyte);
    expect((await ask('cloudfront', { body })).status).toBe(200);
    const { status, headers, body: refusal } = await ask(door, { body });
    expect([status, headers['x-request-id']]).toEqual([413, expect.stringMatching(/^[\w-]{20,}$/)]);
    // Otherwise a page in a browser could not distinguish it from a network failure.
    expect(headers).toMatchObject({
      'access-control-allow-origin': '*',
      'access-control-expose-headers': 'x-request-id, retry-after',
    });
    expect(JSON.parse(refusal)).toEqual({
      type: 'error',
      error: {
        message: expect.stringContaining('4.5 MB') as string,
        type: 'invalid_request_error',
        param: null,
        code: 'request_too_large',
      },
    });
  });

  test('a body that is not UTF-8 is reported as such, because it arrives undecoded', async () => {
    const { status, body } = await ask(door, { body: Buffer.from('7b22ff227d', 'hex') });
    expect([status, body]).toEqual([400, expect.stringContaining('not valid UTF-8')]);
  });

  test('the clients of OpenAI and Anthropic stream', async () => {
    const { baseUrl: baseURL, key: apiKey } = stackOf(door);
    const pieces = [];
    for await (const piece of await new OpenAI({ baseURL, apiKey }).chat.completions.create({
      model: 'demo-chat',
      stream: true,
      messages: [{ role: 'user', content: 'Hello!' }],
    }))
      pieces.push(piece);
    expect(pieces.length).toBeGreaterThan(3);
    const claude = new Anthropic({ baseURL: baseURL.replace('/v1', ''), apiKey });
    const answer = await claude.messages
      .stream({ model: 'demo-chat', max_tokens: 64, messages: [{ role: 'user', content: 'Hello!' }] })
      .finalMessage();
    expect(answer.stop_reason).toBe('end_turn');
  });

  test('the host and the origin that a client claims are ignored', async () => {
    const headers = { 'x-relay-origin': 'forged', 'x-forwarded-host': 'evil.example' };
    const { status, body } = await ask(door, { method: 'GET', path: '/nothing', headers });
    expect(status).toBe(404);
    expect(body).not.toContain('evil.example');
  });
});

/** Follows redirects and keeps the console's cookies as a browser does, and chooses the person at the issuer. */
async function logIn(name: string, path = '') {
  const cookies = new Map<string, string>();
  const base = new URL('/console/', stackOf('cloudfront').baseUrl);
  const open = async (address: string, more: Record<string, string> = {}): Promise<Response> => {
    const cookie = [...cookies].map((pair) => pair.join('=')).join('; ');
    const headers = { 'sec-fetch-dest': 'document', cookie, ...more };
    const reply = await fetch(new URL(address, base), { redirect: 'manual', headers });
    for (const each of reply.headers.getSetCookie()) {
      const [, key = '', value = ''] = /^([^=]+)=([^;]*)/.exec(each) ?? [];
      cookies.set(key, value);
    }
    return reply;
  };
  let page = await open(path);
  for (let hops = 0; hops < 8; hops += 1) {
    const location = page.headers.get('location');
    if (location === null) break;
    const next = new URL(location, page.url);
    if (next.pathname === '/authorize') next.searchParams.set('as', name);
    page = await open(next.href);
  }
  return { page, open };
}

test('the console works behind the distribution: login, reading by role, and live pages', async () => {
  const { page, open } = await logIn('vera', 'customers/demo');
  expect(page.url).toBe(`${new URL(stackOf('cloudfront').baseUrl).origin}/console/customers/demo`);
  expect(await page.text()).toMatch(/read-only[^]*vera@example\.com[^]*demo/);
  expect((await open('customers/demo/grant')).status).toBe(403);
  expect((await open('customers/demo', { 'sec-fetch-dest': 'empty' })).status).toBe(403);
  const [, live = ''] = /data-live="([^"]*)"/.exec(await (await open('requests')).text()) ?? [];
  const watched = await open(live, { 'sec-fetch-dest': 'empty' });
  expect(watched.headers.get('content-type')).toMatch(/^text\/event-stream/);
  const reader = watched.body!.getReader();
  expect(new TextDecoder().decode((await reader.read()).value)).toContain('data: {');
  await reader.cancel();
});

test('the console logs people in by the claims of their issuer, each with the pages of their role', async () => {
  const seen = async (name: string) => {
    const { page, open } = await logIn(name);
    return [(await page.text()).includes('<h2>Channels <'), (await open('settings/plans/1')).status];
  };
  expect(await seen('vera')).toEqual([true, 403]);
  expect(await seen('olga')).toEqual([true, 200]);
  expect((await seen('nobody'))[0]).toBe(false);
});
