import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { createRelayRequest, type HostRequest } from '../../../../shared/adapters/entry/http-entry.ts';

const requestOf = (received: Partial<HostRequest>, local = false) =>
  createRelayRequest(
    {
      method: 'POST',
      path: '/v1/chat/completions',
      query: '',
      headers: {},
      host: 'own.example',
      body: () => '',
      deadlineMs: 42,
      ...received,
    },
    { id: 'id-1', local },
  );

describe("the relay's request from a host's request", () => {
  test.each([
    ['/v1/models/meta%2Fllama', '/v1/models/meta/llama'],
    ['/v1/models/%zz', '/v1/models/%zz'],
  ])('reads the path %s as %s', (path, decoded) => {
    expect(requestOf({ path }).path).toBe(decoded);
  });

  test.each<[string, Record<string, string>, boolean, string]>([
    [
      'the distribution’s host',
      { 'x-forwarded-host': 'api.example.com' },
      false,
      'https://api.example.com/v1',
    ],
    [
      'host and port of the local distribution',
      { 'x-forwarded-host': '127.0.0.1:8787' },
      true,
      'http://127.0.0.1:8787/v1',
    ],
    ['its own name without one', {}, false, 'https://own.example/v1'],
    [
      'its own name for an invalid host',
      { 'x-forwarded-host': 'a.com/"><b>' },
      false,
      'https://own.example/v1',
    ],
    ['its own name for a list', { 'x-forwarded-host': 'a.com, b.com' }, false, 'https://own.example/v1'],
  ])('derives the base URL %s', (_what, headers, local, baseUrl) => {
    expect(requestOf({ headers }, local).baseUrl).toBe(baseUrl);
  });
});

describe('a body', () => {
  test('is requested from the host once, and decoded by the encoding in the header', async () => {
    let asked = 0;
    const body = () => ((asked += 1), gzipSync('{"model":"m"}'));
    const request = requestOf({ headers: { 'Content-Encoding': 'gzip' }, body });
    for (let reads = 0; reads < 2; reads += 1) expect(await request.json()).toEqual({ model: 'm' });
    expect(asked).toBe(1);
  });
});
