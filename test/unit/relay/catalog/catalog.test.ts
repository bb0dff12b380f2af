import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { ChannelRow } from '../../../../shared/config/rows/channel-row.ts';
import { defaultSettings } from '../../../../shared/config/settings.ts';
import type { Snapshot } from '../../../../shared/config/snapshot.ts';
import { createCatalogHandle } from '../../../../shared/relay/catalog/catalog-handle.ts';
import type { RelayRequest } from '../../../../shared/relay/http/http.ts';
import { healthKeySpace, type ChannelHealth } from '../../../../shared/relay/ports/runtime-stores.ts';
import { hash53 } from '../../../../shared/wire/ids.ts';
import { StoreUnavailable } from '../../../../shared/relay/ports/store-errors.ts';
import { expectDocumented } from '../../../openapi/exchange.ts';
import type { RequestLog } from '../../../../shared/relay/ports/telemetry.ts';

const snapshot: Snapshot = {
  publishedAt: 1_700_000_000,
  channels: [] as ChannelRow[],
  charges: [
    { id: 1, type: 'token-billing', models: ['alpha'], input: 0.5, output: 1.5, anonymous: false },
    { id: 2, type: 'non-billing', models: ['vendor/beta'], input: 0, output: 0, anonymous: true },
  ],
  plans: [
    { level: 1, price: 9.9, items: [{ id: 'chat', name: '', icon: '', value: -1, models: ['alpha'] }] },
  ],
  settings: defaultSettings,
  models: ['gamma', 'alpha', 'vendor/beta'],
};

const healthy: ChannelHealth = { entries: async () => new Map(), change: async () => false };

async function call(
  path: string,
  changes: Partial<RelayRequest> = {},
  current: () => Snapshot = () => snapshot,
  newest: () => Snapshot = current,
  health: ChannelHealth = healthy,
) {
  const logged: RequestLog[] = [];
  const faults: unknown[] = [];
  const ages: number[] = [];
  let nowMs = 1000;
  const handle = createCatalogHandle({
    config: {
      current: async () => current(),
      notOlderThan: async (ageMsMax) => {
        ages.push(ageMsMax);
        return newest();
      },
    },
    log: {
      request: (entry) => logged.push(entry),
      event: () => undefined,
      fault: (_id, error) => faults.push(error),
    },
    clock: { now: () => (nowMs += 5), sleep: async () => undefined },
    version: '1.2.3',
    health,
    account: async (request) => ({
      status: 200,
      headers: {},
      body: `"account ${request.path}"`,
      done: Promise.resolve(),
    }),
  });
  const response = await handle({
    id: 'request-1',
    method: 'GET',
    path,
    query: new URLSearchParams(),
    headers: {},
    baseUrl: 'https://relay.example/v1',
    json: async () => undefined,
    rawBody: () => '',
    hostDeadlineMs: 60_000,
    ...changes,
  });
  const text = response.body as string;
  const { status } = response;
  if (!path.startsWith('/v1/account'))
    expectDocumented({ method: changes.method ?? 'GET', path, status, headers: response.headers, text });
  const json = () => JSON.parse(text) as Record<string, unknown> & { error: Record<string, string> };
  return { response, text, json, logged, faults, ages };
}

const entry = (id: string) => ({ id, object: 'model', created: 1_700_000_000, owned_by: 'system' });

const withSettings = (settings: Partial<Snapshot['settings']>) => () => ({
  ...snapshot,
  settings: { ...defaultSettings, ...settings },
});

describe('the public lists', () => {
  test('models carry an empty list in their own form for coding agents that send their version', async () => {
    const { json } = await call('/v1/models', { query: new URLSearchParams('client_version=0.169.0') });
    expect(json()).toMatchObject({ object: 'list', data: [{}, {}, {}], models: [] });
  });

  test('models have the Messages form for its clients, in pages', async () => {
    const model = (id: string) => ({
      type: 'model',
      id,
      display_name: id,
      created_at: '1970-01-01T00:00:00Z',
    });
    const all = ['gamma', 'alpha', 'vendor/beta'];
    const listed = async (query: string, headers: Record<string, string> = { 'x-api-key': 'sk-x' }) =>
      (await call('/v1/models', { headers, query: new URLSearchParams(query) })).json();
    const whole = { data: all.map(model), has_more: false, first_id: 'gamma', last_id: 'vendor/beta' };
    expect(await listed('')).toEqual(whole);
    expect(await listed('limit=1000', { 'anthropic-version': '2023-06-01' })).toEqual(whole);
    const page = { data: [model('gamma'), model('alpha')], has_more: true };
    expect(await listed('limit=2')).toMatchObject(page);
    expect(await listed('limit=2&after_id=alpha')).toMatchObject({
      data: [model('vendor/beta')],
      has_more: false,
    });
    expect(await listed('limit=1&before_id=vendor/beta')).toMatchObject({
      data: [model('alpha')],
      has_more: true,
    });
    const headers = { 'anthropic-version': '2023-06-01' };
    expect((await call('/v1/models/vendor/beta', { headers })).json()).toEqual(model('vendor/beta'));
  });

  test.each([
    ['/v1/models/gone', '', 404, 'not_found_error'],
    ['/v1/models', 'limit=0', 400, 'invalid_request_error'],
    ['/v1/models', 'limit=1001', 400, 'invalid_request_error'],
    ['/v1/models', 'limit=many', 400, 'invalid_request_error'],
    ['/v1/nothing', '', 404, 'not_found_error'],
  ])('%s?%s is rejected in the Messages form for its clients', async (path, query, status, type) => {
    const headers = { 'anthropic-version': '2023-06-01' };
    const { response, json } = await call(path, { headers, query: new URLSearchParams(query) });
    expect([response.status, response.headers['request-id']]).toEqual([
      status,
      response.headers['x-request-id'],
    ]);
    expect(json()).toMatchObject({
      type: 'error',
      error: { type },
      request_id: response.headers['x-request-id'],
    });
  });

  test('the marker of a long context window names the plain model', async () => {
    expect((await call('/v1/models/gamma[1m]')).json()).toEqual(entry('gamma'));
  });

  test('models are listed in channel order with their publication time', async () => {
    const { response, json } = await call('/v1/models');
    expect(json()).toEqual({ object: 'list', data: [entry('gamma'), entry('alpha'), entry('vendor/beta')] });
    expect(response.status).toBe(200);
    expect(response.headers).toEqual({
      'content-type': 'application/json',
      'cache-control': 'public, max-age=5',
      // The list has two forms.
      vary: 'anthropic-version, x-api-key',
      'x-request-id': 'request-1',
    });
  });

  test('an unpriced model is neither listed nor found when unpriced models are refused', async () => {
    const refusing = withSettings({ unpricedModels: 'refuse' });
    const { json } = await call('/v1/models', {}, refusing);
    expect((json()['data'] as { id: string }[]).map(({ id }) => id)).toEqual(['alpha', 'vendor/beta']);
    expect((await call('/v1/models/gamma', {}, refusing)).response.status).toBe(404);
    expect((await call('/v1/models/gamma')).response.status).toBe(200);
  });

  test('a model is found by an id with a slash', async () => {
    expect((await call('/v1/models/vendor/beta')).json()['id']).toBe('vendor/beta');
  });

  test('/v1/charge lists every rule with all keys', async () => {
    expect((await call('/v1/charge')).json()).toEqual(snapshot.charges);
  });

  test('plans are empty until subscriptions are enabled', async () => {
    expect((await call('/v1/plans')).json()).toEqual([]);
    expect((await call('/v1/plans', {}, withSettings({ subscriptionEnabled: true }))).json()).toEqual(
      snapshot.plans,
    );
  });
});

test('health reports the version', async () => {
  expect((await call('/health')).json()).toMatchObject({ status: 'ok', version: '1.2.3', models: 3 });
});

test.each(['/v1/models', '/v1/charge', '/v1/plans', '/health', '/'])(
  'HEAD %s answers like GET',
  async (path) => {
    const got = await call(path);
    const head = await call(path, { method: 'HEAD' });
    expect(head.response).toEqual(got.response);
  },
);

test('HEAD /api/hello, which Messages clients send before a call, is an unknown path', async () => {
  expect((await call('/api/hello', { method: 'HEAD' })).response.status).toBe(404);
});

describe('the models page', () => {
  test('is HTML for a browser and text for curl', async () => {
    expect((await call('/', { headers: { accept: 'text/html' } })).text).toMatch(/^<!doctype html>/);
    const { text, response } = await call('/', { headers: { accept: '*/*' } });
    expect(text).toContain('Base URL https://relay.example/v1');
    expect(response.headers['cache-control']).toBe('public, max-age=5');
  });

  test.each([
    ['zh-CN', '', 'zh-CN'],
    ['fr-FR, zh;q=0.9, en;q=0.8', '', 'zh-CN'],
    ['en-GB,en;q=0.9,zh-CN;q=0.8', '', 'en'],
    ['fr, zho, *', '', 'en'],
    [undefined, '', 'en'],
    ['zh-CN', 'lang=en', 'en'],
    ['en', 'lang=zh', 'zh-CN'],
    ['zh', 'lang=<b>', 'zh-CN'],
  ])('is shown to a browser of %j at ?%s in %s', async (language, query, lang) => {
    const headers = { accept: 'text/html', 'accept-language': language };
    const { text, response } = await call('/', { headers, query: new URLSearchParams(query) });
    expect(/<html lang="(.*?)"/.exec(text)?.[1]).toBe(lang);
    expect(response.headers['vary']).toBe('accept, accept-language');
  });

  test('shows only the model named in the address, and rejects one that is not offered', async () => {
    const query = new URLSearchParams({ model: 'vendor/beta' });
    const { text } = await call('/', { headers: { accept: '*/*' }, query });
    expect(text).toMatch(/^vendor\/beta\n/);
    expect(text).not.toContain('alpha');
    expect(text).toMatch(/Model name vendor\/beta\n/);
    for (const model of ['none', '', '__proto__']) {
      const { response, json } = await call('/', { query: new URLSearchParams({ model }) });
      expect([response.status, json().error['code']]).toEqual([404, 'model_not_found']);
    }
  });

  test('tells a browser that no model has the name, above the list of models', async () => {
    for (const model of ['<b>none', '', '__proto__']) {
      const query = new URLSearchParams({ model });
      const { response, text } = await call('/', { headers: { accept: 'text/html,*/*;q=0.8' }, query });
      expect([response.status, response.headers['content-type']]).toEqual([404, 'text/html; charset=utf-8']);
      expect(text).toMatch(/<li>No model has this name\.<\/li>[^]*vendor\/beta/);
      expect(text).not.toContain('<b>none');
    }
  });

  test('is disabled by its setting', async () => {
    const { response, json } = await call('/', {}, withSettings({ page: false }));
    expect(response.status).toBe(404);
    expect(json().error['code']).toBe('not_found');
  });
});

describe('the account page', () => {
  const browser = { headers: { accept: 'text/html,*/*;q=0.8' } };

  test('is the same for every visitor and loads no other resource', async () => {
    const { response, text } = await call('/account', browser);
    const own = await call('/account', { headers: { ...browser.headers, authorization: 'Bearer sk-a' } });
    expect(own.text).toBe(text);
    const { headers } = response;
    expect(headers['cache-control']).toBe('public, max-age=5');
    expect(headers['referrer-policy']).toBe('no-referrer');
    const policy = headers['content-security-policy'] ?? '';
    expect(policy).toContain("default-src 'none'; script-src 'sha256-");
    for (const part of [
      "connect-src 'self'",
      'img-src data:',
      "frame-ancestors 'none'",
      "form-action 'none'",
    ])
      expect(policy.split('; ')).toContain(part);
    expect(policy).not.toContain('unsafe');
    for (const [kind, pattern] of [
      ['script', /<script>([^]*)<\/script>/],
      ['style', /<style>([^]*)<\/style>/],
    ] as const) {
      const hash = createHash('sha256')
        .update(pattern.exec(text)?.[1] ?? '')
        .digest('base64');
      expect(policy).toContain(`${kind}-src 'sha256-${hash}'`);
    }
    expect(text).not.toMatch(/ src=| style=| on\w+="|<link/);
    expect(Buffer.byteLength(text)).toBeLessThan(100_000);
  });

  test('is not served to programs, which are pointed to the endpoint', async () => {
    const { response, json } = await call('/account', { headers: { accept: '*/*' } });
    expect(response.status).toBe(404);
    expect(json().error['message']).toContain('https://relay.example/v1/account');
  });

  test('is disabled by its setting, and then not linked', async () => {
    const off = withSettings({ accountPage: false });
    expect((await call('/account', browser, off)).response.status).toBe(404);
    expect((await call('/', browser, off)).text).not.toContain('href="/account"');
    expect((await call('/', browser)).text).toContain('href="/account"');
  });
});

describe('the OpenAPI document', () => {
  const path = '/v1/openapi.json';

  test('needs no key, is served without the models page, and has a strong entity tag for caches', async () => {
    const { response, json } = await call(path, {}, withSettings({ page: false }));
    expect(response.status).toBe(200);
    expect(response.headers).toMatchObject({
      'content-type': 'application/json',
      'cache-control': 'public, max-age=300',
    });
    expect(response.headers['etag']).toMatch(/^"[^"]+"$/);
    expect(json()).toEqual(JSON.parse(readFileSync('docs/openapi.json', 'utf8')));
  });

  test('is not sent again to a reader that sends its tag', async () => {
    const { etag = '' } = (await call(path)).response.headers;
    const ask = (tags: string) => call(path, { headers: { 'if-none-match': tags } });
    for (const tags of [etag, `"old", ${etag}`, `W/${etag}`]) {
      const { response, text } = await ask(tags);
      expect([response.status, text, response.headers['etag']]).toEqual([304, '', etag]);
    }
    expect((await ask('"old"')).response.status).toBe(200);
  });
});

describe('the page’s script', () => {
  test('is served under the name in the page, and may be cached', async () => {
    const { text: html } = await call('/', { headers: { accept: 'text/html' } });
    const path = /<script src="([^"]+)"/.exec(html)?.[1] ?? '';
    expect(path).toMatch(/^\/assets\/page-[0-9a-f]{16}\.js$/);
    const { response } = await call(path);
    expect(response.headers).toMatchObject({
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
    });
  });
});

describe('unavailable models', () => {
  const nowMs = 1000;
  const channel = (id: string, models: string[]) =>
    ({ id, models, weight: 1, secret: undefined }) as unknown as ChannelRow;
  const channels = [channel('a', ['alpha', 'gamma']), channel('b', ['gamma'])];
  const shownWith = async (rested: string[], untilMs: number): Promise<string[]> => {
    const entries = new Map(
      rested.map((id) => [hash53(id) % healthKeySpace, { kind: 'failing' as const, untilMs }]),
    );
    const health = { ...healthy, entries: async () => entries };
    const current = () => ({ ...snapshot, channels, models: ['alpha', 'gamma'] });
    const { text } = await call('/', { headers: { accept: '*/*' } }, current, current, health);
    return [...text.matchAll(/^\t(\S+) unavailable\t/gm)].map((match) => String(match[1]));
  };

  test('are those whose candidates are all in cooldown', async () => {
    expect(await shownWith(['a'], nowMs + 30_000)).toEqual(['alpha']);
    expect(await shownWith(['a', 'b'], nowMs + 30_000)).toEqual(['alpha', 'gamma']);
  });
});

describe('store failures', () => {
  test('an unreachable store is answered by 503 with a Retry-After, and logged once', async () => {
    const { response, json, logged } = await call('/v1/models', {}, () => {
      throw new StoreUnavailable('10.0.0.7 refused');
    });
    expect(response.status).toBe(503);
    expect(Number(response.headers['retry-after'])).toBeGreaterThan(0);
    expect(json().error['code']).toBe('unavailable');
    expect(logged).toEqual([
      {
        request_id: 'request-1',
        endpoint: 'catalog',
        status: 503,
        end: 'failed',
        duration_ms: 5,
        code: 'unavailable',
        reason: 'store_unavailable',
      },
    ]);
  });

  test.each([
    ['/v1/models', 200],
    ['/v1/charge', 200],
    ['/health', 200],
    ['/v1/models/nobody-has-this', 503],
  ])(
    'an unreachable store keeps the last lists, and rejects no model by them: %s is %i',
    async (path, status) => {
      const unreachable = () => {
        throw new StoreUnavailable('10.0.0.7 refused');
      };
      const { response } = await call(path, {}, () => snapshot, unreachable);
      expect(response.status).toBe(status);
    },
  );
});

describe('aliases', () => {
  const aliases = [
    { name: 'best', models: ['gone', 'alpha', 'gamma'], onContextLength: false },
    { name: 'none', models: ['gone'], onContextLength: false },
    { name: 'gamma', models: ['alpha'], onContextLength: false },
  ];
  const current = (more: Partial<Snapshot['settings']> = {}) => ({
    ...snapshot,
    settings: { ...snapshot.settings, aliases, ...more },
  });

  test('aliases are listed after the models while one of their models is offered', async () => {
    const { json } = await call('/v1/models', {}, current);
    expect((json()['data'] as { id: string }[]).map(({ id }) => id)).toEqual([
      'gamma',
      'alpha',
      'vendor/beta',
      'best',
    ]);
    expect((await call('/v1/models/best', {}, current)).json()).toEqual({
      id: 'best',
      object: 'model',
      created: 1_700_000_000,
      owned_by: 'system',
    });
    expect((await call('/v1/models/none', {}, current)).response.status).toBe(404);
    const refusing = () =>
      current({ unpricedModels: 'refuse', aliases: [{ ...aliases[0]!, models: ['gamma'] }] });
    expect((await call('/v1/models/best', {}, refusing)).response.status).toBe(404);
  });
});
