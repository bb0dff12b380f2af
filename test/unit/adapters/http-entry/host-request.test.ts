import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { relayRequest, type HostRequest } from '../../../../shared/adapters/entry/http-entry.ts';

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

describe('a compressed body', () => {
  const read = (encoding: string, body: string | Uint8Array): unknown => {
    try {
      return requestOf({ headers: { 'Content-Encoding': encoding }, body: () => body }).json();
    } catch (error) {
      const { status, body: answer } = error as { status: number; body: { error: { code: string } } };
      const unpacked = (error as Error).message.includes('unpacks to more than') ? ' unpacked' : '';
      return `${status} ${answer.error.code}${unpacked}`;
    }
  };
  const json = '{"model":"m"}';
  const packed = gzipSync(json);

  test.each(['gzip', 'GZIP', ' x-gzip '])('is read in %s', (encoding) => {
    expect(read(encoding, packed)).toEqual({ model: 'm' });
  });

  test.each(['', 'identity'])('is read as it is in %j', (encoding) => {
    expect(read(encoding, json)).toEqual({ model: 'm' });
  });

  test.each(['br', 'zstd', 'deflate', 'gzip, gzip', 'compress'])('is refused by name in %s', (encoding) => {
    expect(read(encoding, packed)).toBe('415 unsupported_content_encoding');
  });

  test.each<[string, string | Uint8Array]>([
    ['is not gzip', json],
    ['is cut', packed.subarray(0, -9)],
    ['is changed', Buffer.from(packed).fill(0, 12, 16)],
    ['is empty', ''],
  ])('that %s is refused', (_what, body) => {
    expect(read('gzip', body)).toBe('400 invalid_encoding');
  });

  test('is unpacked to 4 MB and no further, in one piece or in several', () => {
    const full = Buffer.alloc(4 * 1024 * 1024, ' ');
    full.write(json);
    expect(read('gzip', gzipSync(full))).toEqual({ model: 'm' });
    const above = Buffer.concat([full, Buffer.from(' ')]);
    expect(read('gzip', gzipSync(above))).toBe('413 request_too_large unpacked');
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));
    expect(read('gzip', Buffer.concat([bomb, bomb, bomb]))).toBe('413 request_too_large unpacked');
    expect(read('gzip', Buffer.concat([gzipSync(full), packed]))).toBe('413 request_too_large unpacked');
    expect(read('gzip', Buffer.alloc(5 * 1024 * 1024))).toBe('413 request_too_large');
  });
});
