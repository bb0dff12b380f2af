import { expect, test } from 'vitest';
import { defaultSettings } from '../../../../shared/config/settings.ts';
import type { Snapshot } from '../../../../shared/config/snapshot.ts';
import { addCors, type RelayResponse } from '../../../../shared/relay/http/http.ts';
import { StoreUnavailable } from '../../../../shared/relay/ports/store-errors.ts';

const plain: RelayResponse = {
  status: 200,
  headers: { 'x-request-id': 'request-1', 'x-relay-limited-by': 'balance' },
  body: 'answer',
  done: Promise.resolve(),
};

function send(
  corsOrigins: string[] | 'unreachable',
  method: string,
  headers: Record<string, string>,
  response: RelayResponse = plain,
) {
  const current = async (): Promise<Snapshot> => {
    if (corsOrigins === 'unreachable') throw new StoreUnavailable('no store');
    const settings = { ...defaultSettings, corsOrigins };
    return { publishedAt: 0, channels: [], charges: [], plans: [], settings, models: [] };
  };
  const refused: RelayResponse = { ...plain, status: 405, headers: { allow: 'POST' } };
  const handle = addCors(async (request) => (request.method === 'OPTIONS' ? refused : response), {
    current,
    notOlderThan: current,
  });
  return handle({
    id: 'request-1',
    method,
    path: '/v1/chat/completions',
    query: new URLSearchParams(),
    headers,
    baseUrl: 'https://relay.example/v1',
    json: async () => undefined,
    rawBody: () => '',
    hostDeadlineMs: 60_000,
  });
}

const preflight = {
  origin: 'https://app.example',
  'access-control-request-method': 'POST',
  'access-control-request-headers': 'authorization,content-type,x-stainless-lang',
};

test('by default an answer is unchanged and OPTIONS is rejected', async () => {
  expect(await send([], 'POST', { origin: 'https://app.example' })).toEqual(plain);
  const options = await send([], 'OPTIONS', preflight);
  expect(options.status).toBe(405);
  expect(Object.keys(options.headers)).toEqual(['allow']);
});

test('an allowed origin may read the answer, the request id and the relay headers', async () => {
  const { headers, body } = await send(['https://app.example'], 'POST', { origin: 'https://app.example' });
  expect(body).toBe('answer');
  expect(headers['access-control-allow-origin']).toBe('https://app.example');
  expect(headers['vary']).toBe('origin');
  const exposed = headers['access-control-expose-headers']?.split(', ');
  expect(exposed).toEqual(expect.arrayContaining(['x-request-id', 'x-relay-limited-by', 'retry-after']));
});

test.each(['https://app.example.evil', 'https://APP.example', 'null', 'http://app.example'])(
  'origin %s may not read the answer: it is not the allowed one',
  async (origin) => {
    const { headers } = await send(['https://app.example'], 'POST', { origin });
    expect(headers['access-control-allow-origin']).toBeUndefined();
    expect(headers['vary']).toBe('origin');
  },
);

test('answers vary by origin even without one, in addition to their other headers', async () => {
  const paged = { ...plain, headers: { vary: 'accept' } };
  expect((await send(['https://app.example'], 'GET', {}, paged)).headers).toEqual({ vary: 'accept, origin' });
});

test('a preflight of an allowed origin is answered with the requested headers', async () => {
  const { status, headers, body } = await send(['https://app.example'], 'OPTIONS', preflight);
  expect(status).toBe(204);
  expect(body).toBe('');
  expect(headers).toMatchObject({
    'access-control-allow-origin': 'https://app.example',
    'access-control-allow-methods': 'GET, HEAD, POST, DELETE',
    'access-control-allow-headers': 'authorization,content-type,x-stainless-lang',
    'x-request-id': 'request-1',
  });
});

test('a preflight can only add header names to the answer', async () => {
  const { headers } = await send(['*'], 'OPTIONS', {
    ...preflight,
    'access-control-request-headers': 'a\r\nb: c',
  });
  expect(headers['access-control-allow-headers']).toBe('authorization, content-type');
});
