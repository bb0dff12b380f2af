import { describe, expect, test } from 'vitest';
import { relayRequest, type HostRequest } from '../../../../shared/adapters/http-entry/host-request.ts';

const requestOf = (received: Partial<HostRequest>, local = false) =>
  relayRequest(
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

describe('the relay’s request from a host’s', () => {
  test('keeps method, query, headers in lower case, id and deadline', () => {
    const request = requestOf({ method: 'GET', query: 'a=1&a=2', headers: { Authorization: 'Bearer x' } });
    expect(request).toMatchObject({ id: 'id-1', method: 'GET', hostDeadlineMs: 42 });
    expect(request.query.getAll('a')).toEqual(['1', '2']);
    expect(request.headers['authorization']).toBe('Bearer x');
  });

  test('counts HEAD as GET', () => {
    expect(requestOf({ method: 'HEAD' }).method).toBe('GET');
  });

  test.each([
    ['/v1/models/meta%2Fllama', '/v1/models/meta/llama'],
    ['/v1/models/%zz', '/v1/models/%zz'],
  ])('reads the path %s as %s', (path, decoded) => {
    expect(requestOf({ path }).path).toBe(decoded);
  });

  test('does not read the body by itself', () => {
    const request = requestOf({ body: () => 'not JSON' });
    expect(() => request.json()).toThrow('not valid JSON');
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
      'its own name for what is no host',
      { 'x-forwarded-host': 'a.com/"><b>' },
      false,
      'https://own.example/v1',
    ],
    ['its own name for a list', { 'x-forwarded-host': 'a.com, b.com' }, false, 'https://own.example/v1'],
  ])('names as base URL %s', (_what, headers, local, baseUrl) => {
    expect(requestOf({ headers }, local).baseUrl).toBe(baseUrl);
  });
});
