import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createSearchProviders } from '../../../../shared/adapters/transport/search-providers.ts';
import { createHttpsTransport } from '../../../../shared/adapters/transport/https-transport.ts';
import { readSetting } from '../../../../shared/config/setting-rows.ts';
import { defaultSettings, type SearchSettings } from '../../../../shared/config/settings.ts';
import { createEmptySnapshot } from '../../../../shared/config/snapshot.ts';
import { searchForCall } from '../../../../shared/relay/search.ts';

import type { ChatMessage, ChatRequest } from '../../../../shared/wire/canonical-call.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const never = new AbortController().signal;
const question = { role: 'user' as const, content: 'What is new?' };
const request = { model: 'web-m', messages: [question] };
const look = { type: 'function', function: { name: 'look' } };

interface Asked {
  method: string | undefined;
  url: string | undefined;
  headers: IncomingMessage['headers'];
  body: string;
}

type Reply = (response: ServerResponse) => void;
const json =
  (value: unknown): Reply =>
  (response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));

async function provider(reply: Reply) {
  const asked: Asked[] = [];
  const closed = Promise.withResolvers<void>();
  const server = createServer((incoming, response) => {
    const { method, url, headers } = incoming;
    response.once('close', closed.resolve);
    void text(incoming).then((body) => {
      asked.push({ method, url, headers, body });
      reply(response);
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    closed: closed.promise,
  };
}

/** Returns the text of the first message. */
function contentOf([first]: ChatMessage[]): string {
  return typeof first?.content === 'string' ? first.content : '';
}

const settingsOf = (value: Record<string, unknown>): SearchSettings => {
  const reading = readSetting({ name: 'search', value }, { local: true });
  if ('problem' in reading || !reading.row.search) throw new Error(JSON.stringify(reading));
  return reading.row.search;
};

const realProviders = createSearchProviders({
  transport: createHttpsTransport({ local: true }),
  secrets: { read: (reference) => Promise.resolve(`value of ${reference}`) },
});

function call(search: SearchSettings | undefined, more: { signal?: AbortSignal } = {}) {
  const settings = { ...defaultSettings, ...(search && { search }) };
  return {
    request,
    snapshot: { ...createEmptySnapshot(1), settings },
    tariff: { prices: new Map(), limits: new Map(), search: search && 0n },
    signal: more.signal ?? never,
    states: new Map(),
  };
}

const stillClock = { now: () => Date.UTC(2026, 10, 21), sleep: () => new Promise<void>(() => {}) };
const ports = { clock: stillClock, searchProvider: realProviders };

const searxngAnswer = {
  query: 'What is new?',
  number_of_results: 0,
  results: [
    {
      title: 'One',
      url: 'https://one.example.com/',
      content: 'First <b>hit</b>.',
      publishedDate: '2026-11-20T00:00:00',
      score: 3,
    },
    { title: 'No address', url: 'javascript:alert(1)', content: 'x' },
    { url: 'https://empty.example.com/' },
    'junk',
    null,
    { title: 'Two', url: 'https://two.example.com/', content: null, publishedDate: null },
    { title: 'Three', url: 'https://three.example.com/', content: 'Third.' },
  ],
};

describe('a web- call', () => {
  it('queries SearXNG and puts the results first', async () => {
    const { endpoint, asked } = await provider(json(searxngAnswer));
    const web = call(
      settingsOf({ type: 'searxng', endpoint: `${endpoint}/search/`, results: 2, language: 'zh-CN' }),
    );
    const { request: searched, outcome } = await searchForCall(ports, web);
    const { messages, ...rest } = searched;
    expect(rest).toEqual({ model: 'web-m' });
    expect(messages).toEqual([
      { role: 'system', content: expect.any(String) as unknown },
      ...request.messages,
    ]);
    const content = contentOf(messages);
    expect(content).toContain('[1] One\nhttps://one.example.com/\nDate: 2026-11-20T00:00:00\nFirst hit.');
    expect(content).toContain('[2] Two\nhttps://two.example.com/');
    expect(content).not.toContain('Three');
    expect(asked).toHaveLength(1);
    expect(asked[0]).toMatchObject({
      method: 'POST',
      url: '/search',
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
      body: 'q=What+is+new%3F&format=json&categories=general&language=zh-CN',
    });
    expect(asked[0]?.headers).not.toHaveProperty('authorization');
    expect(outcome).toBe('found');
    expect(request.messages).toHaveLength(1);
  });

  it('queries Tavily with the secret behind the reference', async () => {
    const answer = {
      results: [{ title: 'T', url: 'https://t.example.com/', content: 'Text.', published_date: 'Fri' }],
    };
    const { endpoint, asked } = await provider(json(answer));
    const web = call(settingsOf({ type: 'tavily', endpoint, secret: 'env:TAVILY', results: '3' }));
    const { messages } = (await searchForCall(ports, web)).request;
    expect(contentOf(messages)).toContain('[1] T\nhttps://t.example.com/\nDate: Fri\nText.');
    expect(asked[0]).toMatchObject({ method: 'POST', url: '/search' });
    expect(asked[0]?.headers.authorization).toBe('Bearer value of env:TAVILY');
    expect(JSON.parse(String(asked[0]?.body))).toEqual({
      query: 'What is new?',
      max_results: 3,
      search_depth: 'basic',
    });
  });
});

describe('the request of a web- call', () => {
  it.each<[string, Reply, string, boolean]>([
    ['finds nothing', json({ results: [] }), 'empty', true],
    [
      'answers with a page',
      (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>'),
      'failed',
      true,
    ],
    ['answers with other JSON', json([1, 2]), 'failed', true],
    ['refuses the format', (response) => response.writeHead(403).end('<h1>Forbidden</h1>'), 'failed', false],
    [
      'breaks off',
      (response) => response.writeHead(200).write('{"results":[', () => response.destroy()),
      'failed',
      true,
    ],
    [
      'sends an endless answer',
      (response) => {
        response.writeHead(200);
        const pour = (): boolean =>
          !response.destroyed && response.write(' '.repeat(256 * 1024), () => pour());
        pour();
      },
      'failed',
      true,
    ],
  ])('goes out unchanged when the provider %s', async (_case, reply, outcome, isBilled) => {
    const { endpoint, closed } = await provider(reply);
    const web = call(settingsOf({ type: 'searxng', endpoint }));
    const searched = await searchForCall(ports, web);
    expect(searched).toEqual({ request, outcome, isBilled });
    expect(searched.request).toBe(request);
    await closed;
  });

  it.each<[string, Partial<ChatRequest>, ('system' | 'user' | 'assistant')[]]>([
    ['first for a question without tools or effort', {}, ['system', 'user']],
    ['first without reasoning', { reasoning_effort: 'none', tools: [] }, ['system', 'user']],
    ['after the question if there are tools', { tools: [look] }, ['user', 'user']],
    ['after the question if there is an effort', { reasoning_effort: 'low' }, ['user', 'user']],
    [
      'after the last question of a longer conversation',
      { messages: [question, { role: 'assistant', content: 'Hi.' }, question] },
      ['user', 'assistant', 'user', 'user'],
    ],
  ])('has the results %s', async (_case, more, roles) => {
    const { endpoint } = await provider(json(searxngAnswer));
    const web = call(settingsOf({ type: 'searxng', endpoint }));
    const { request: searched } = await searchForCall(ports, { ...web, request: { ...request, ...more } });
    expect(searched.messages.map(({ role }) => role)).toEqual(roles);
    expect(contentOf(searched.messages.slice(-2))).toMatch(/^Web search results of/);
  });

  it('goes out unchanged after three seconds of silence, and the connection is closed', async () => {
    const clock = new VirtualClock();
    const arrived = Promise.withResolvers<void>();
    const { endpoint, closed } = await provider((response) => {
      response.writeHead(200).write('{"results":[');
      arrived.resolve();
    });
    // Virtual time stops until the provider has the question.
    const waiting = {
      now: () => clock.now(),
      sleep: (ms: number, signal?: AbortSignal) => arrived.promise.then(() => clock.sleep(ms, signal)),
    };
    const web = call(settingsOf({ type: 'searxng', endpoint }));
    const startedMs = clock.now();
    const searched = await clock.run(searchForCall({ ...ports, clock: waiting }, web));
    expect(searched).toEqual({ request, outcome: 'timeout', isBilled: true });
    expect(clock.now() - startedMs).toBe(3000);
    await closed;
  });

  it('goes out unchanged and is not charged for the search when the provider is unreachable', async () => {
    const web = call(settingsOf({ type: 'searxng', endpoint: 'http://127.0.0.1:1' }));
    expect(await searchForCall(ports, web)).toEqual({ request, outcome: 'failed', isBilled: false });
  });

  it('goes out unchanged without a provider or a question', async () => {
    const unset = call(undefined);
    expect(await searchForCall(ports, unset)).toEqual({ request, outcome: 'none', isBilled: false });

    const silent = {
      ...call(settingsOf({ type: 'tavily', endpoint: 'http://127.0.0.1:1' })),
      request: { ...request, messages: [] },
    };
    expect(await searchForCall(ports, silent)).toEqual({
      request: silent.request,
      outcome: 'no_query',
      isBilled: false,
    });
  });
});
