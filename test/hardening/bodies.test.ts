import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from 'node:zlib';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { expectErrorBody } from './answers.ts';
import { hardeningStack } from './hardening-stack.ts';
import type { CountedStack } from './watched-stack.ts';

let upstream: ScriptedUpstream;
let stack: CountedStack;
let firstProcess: number[];

beforeAll(async () => {
  ({ upstream, stack } = await hardeningStack());
  await stack.post(hello);
  firstProcess = stack.chatProcesses();
});
beforeEach(() => upstream.forget());

/** Makes one more request. Returns how many requests the function has served. */
async function served(): Promise<number> {
  const { headers } = await stack.post(hello);
  await stack.logged(headers.get('x-request-id') ?? '');
  return stack.lines.filter((line) => line.startsWith('[chat]') && line.includes('"duration_ms"')).length;
}

const messages = [{ role: 'user', content: 'Hello' }];
const hello = { model: 'plain', messages };
const helloText = JSON.stringify(hello);
const megabyte = 1024 * 1024;

/** A valid request of exactly this many bytes. */
function sized(bytes: number): string {
  const empty = JSON.stringify({ model: 'plain', messages: [{ role: 'user', content: '' }] });
  return empty.replace('"content":""', `"content":"${'x'.repeat(Math.floor(bytes) - empty.length)}"`);
}

/** A valid request with an extra field nested this deep; the request itself is one level. */
const nested = (levels: number): string =>
  helloText.replace('{', `{"extra":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)},`);

const withFields = (fields: string): string => helloText.replace('{', `{${fields},`);
const latin1 = (text: string): Uint8Array<ArrayBuffer> => Uint8Array.from(Buffer.from(text, 'latin1'));
const utf16 = (text: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(Buffer.from(`\uFEFF${text}`, 'utf16le'));
const binary = { 'content-type': 'application/octet-stream' };
const inZstd = { 'content-encoding': 'zstd' };
const bytesOf = (buffer: Buffer): Uint8Array<ArrayBuffer> => Uint8Array.from(buffer);
const packed = (body: string | Uint8Array): Uint8Array<ArrayBuffer> => bytesOf(zstdCompressSync(body));
const blanks = Buffer.alloc(64 * megabyte, ' ');
/** Brotli's usual quality takes a second for the blanks. */
const quickly = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } };
const many = (count: number, item: string): string => `[${`${item},`.repeat(count - 1)}${item}]`;

/** Posts an invalid body. Checks that the same process then serves a valid one, and returns the error. */
async function refused(
  body: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
): Promise<{ status: number; text: string }> {
  const response = await stack.post(body, { headers });
  const text = await response.text();
  expect(upstream.requests).toEqual([]);
  expect((await stack.post(hello)).status).toBe(200);
  expect(stack.chatProcesses()).toEqual(firstProcess);
  return { status: response.status, text };
}

describe('an invalid body is rejected with a clear error', () => {
  test.each<[string, string | Uint8Array<ArrayBuffer>, number, string, Record<string, string>?]>([
    ['a byte over 6 MB in zstd', packed(sized(6 * megabyte + 1)), 413, 'request_too_large', inZstd],
    [
      'a compression bomb in gzip',
      bytesOf(gzipSync(blanks, { level: 1 })),
      413,
      'request_too_large',
      { 'content-encoding': 'gzip' },
    ],
    ['a compression bomb in zstd', packed(blanks), 413, 'request_too_large', inZstd],
    [
      'a compression bomb in br',
      bytesOf(brotliCompressSync(blanks, quickly)),
      413,
      'request_too_large',
      { 'content-encoding': 'br' },
    ],
    ['zstd in zstd', packed(packed(helloText)), 400, 'invalid_encoding', inZstd],
    [
      'zstd that is declared twice',
      packed(packed(helloText)),
      415,
      'unsupported_content_encoding',
      { 'content-encoding': 'zstd, zstd' },
    ],
    [
      'zstd that is declared as gzip',
      packed(helloText),
      400,
      'invalid_encoding',
      { 'content-encoding': 'gzip' },
    ],
    ['half of a zstd stream', packed(helloText).subarray(0, -9), 400, 'invalid_encoding', inZstd],
    ['no bytes', '', 400, 'empty_body'],
    ['blanks', ' \r\n\t', 400, 'empty_body'],
    ['half of a document', helloText.slice(0, -1), 400, 'invalid_json'],
    ['two documents', helloText + helloText, 400, 'invalid_json'],
    ['JavaScript', "{model: 'plain'}", 400, 'invalid_json'],
    [
      'a form',
      'model=plain&messages=hello',
      400,
      'invalid_json',
      { 'content-type': 'application/x-www-form-urlencoded' },
    ],
    ['201 levels', nested(201), 400, 'json_too_deep'],
    ['a million levels', '['.repeat(megabyte), 400, 'json_too_deep'],
    ['a million objects', '{"a":'.repeat(800_000), 400, 'json_too_deep'],
    ['Latin-1', latin1(helloText.replace('Hello', 'Grüße')), 400, 'invalid_encoding', binary],
    ['UTF-16', utf16(helloText), 400, 'invalid_encoding', binary],
    [
      'gzip',
      Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0),
      400,
      'invalid_encoding',
      { 'content-encoding': 'gzip' },
    ],
    ['an array', `[${helloText}]`, 400, 'invalid_type'],
    ['null', 'null', 400, 'invalid_type'],
    ['a text', '"hello"', 400, 'invalid_type'],
    ['a number', '7', 400, 'invalid_type'],
    [
      'two million messages of the wrong kind',
      `{"model":"plain","messages":${many(2_000_000, '0')}}`,
      400,
      'json_too_wide',
    ],
    [
      'a million messages without a role',
      `{"model":"plain","messages":${many(1_000_000, '{}')}}`,
      400,
      'json_too_wide',
    ],
    [
      'as many invalid messages as values are allowed',
      `{"model":"plain","messages":${many(99_000, '0')}}`,
      400,
      'invalid_type',
    ],
    [
      'as many messages without a role as values are allowed',
      `{"model":"plain","messages":${many(49_000, '{}')}}`,
      400,
      'missing_required_parameter',
    ],
    [
      'as many invalid parts as values are allowed',
      `{"model":"plain","messages":[{"role":"user","content":${many(99_000, '0')}}]}`,
      400,
      'invalid_type',
    ],
    [
      'a role that exists only on the prototype',
      '{"model":"plain","messages":[{"__proto__":{"role":"user","content":"x"}}]}',
      400,
      'missing_required_parameter',
    ],
    [
      'a model that exists only on the prototype',
      '{"__proto__":{"model":"plain"},"messages":[{"role":"user","content":"x"}]}',
      400,
      'missing_required_parameter',
    ],
    ['a number out of range', withFields('"temperature":1e999'), 400, 'invalid_type'],
  ])('%s', async (_name, body, status, code, headers = {}) => {
    const answer = await refused(body, headers);
    expectErrorBody(answer.text, 'invalid_request_error', code);
    expect(answer.status).toBe(status);
    expect(answer.text.length).toBeLessThan(500);
  });

  test.each<[string, string, Record<string, string>?]>([
    ['over 6 MB', sized(6 * megabyte + 1)],
    ['less, but too much with the rest of the event', sized(6 * megabyte - 200)],
    ['4 MB of quotes, which the event escapes', sized(4 * megabyte).replaceAll('xx', String.raw`\"`)],
    ['4.6 MB as bytes, which the event encodes in base64', sized(4.6 * megabyte), binary],
  ])('%s: by the platform, before the function', async (_what, body, headers = {}) => {
    const before = await served();
    const response = await stack.post(body, { headers });
    expect(response.status).toBe(413);
    expect(await response.json()).toHaveProperty('message');
    expect(await served()).toBe(before + 1);
  });
});

describe('an unusual body is served', () => {
  test.each<[string, string | Uint8Array<ArrayBuffer>, Record<string, string>?]>([
    ['nearly 6 MB', sized(6 * megabyte - 4_000)],
    ['4.4 MB as bytes', sized(4.4 * megabyte), binary],
    ['exactly 6 MB in zstd', packed(sized(6 * megabyte)), inZstd],
    ['in br', bytesOf(brotliCompressSync(helloText)), { 'content-encoding': 'br' }],
    ['declared as a form, as curl does', helloText, { 'content-type': 'application/x-www-form-urlencoded' }],
    ['as bytes', helloText, binary],
    ['as plain text', helloText, { 'content-type': 'text/plain' }],
    ['as JSON in another character set', helloText, { 'content-type': 'application/json; charset=latin1' }],
    ['with a byte order mark', `\uFEFF${helloText}`],
    ['with blanks around it', `\r\n ${helloText}\n`],
    ['200 levels deep', nested(200)],
    ['with brackets in a text', helloText.replace('Hello', '['.repeat(10_000))],
    ['with a zero character', helloText.replace('Hello', String.raw`\u0000`)],
    ['with half of a surrogate pair', helloText.replace('Hello', String.raw`\ud800`)],
    ['with a repeated name: the last one counts', withFields('"model":"nobody"')],
    [
      'with prototypes, which are ignored',
      withFields('"__proto__":{"stream":true,"official":true},"constructor":{"prototype":{"stream":true}}'),
    ],
    ['with null in optional fields', withFields('"stream":null,"max_tokens":null,"tools":null')],
  ])('%s', async (_name, body, headers = {}) => {
    const response = await stack.post(body, { headers });
    expect(await response.json()).toMatchObject({ object: 'chat.completion' });
    expect(response.status).toBe(200);
    expect(stack.chatProcesses()).toEqual(firstProcess);
    expect(upstream.requests.at(-1)?.body).toMatchObject({ model: 'plain', stream: true });
  });

  test.each(['constructor', '__proto__'])('for a model called %s', async (model) => {
    const response = await stack.post({ ...hello, model });
    expect(await response.json()).toMatchObject({ model });
    expect(upstream.requests.at(-1)?.body['model']).toBe(model);
  });
});

describe('keys', () => {
  const malformed = [
    '',
    'Bearer',
    'Bearer ',
    'Bearer not-a-key',
    'Bearer sk-',
    'Bearer sk-two words',
    'Bearer sk-\u00fcmlaut',
    `Bearer sk-${'x'.repeat(201)}`,
    'Bearer Bearer sk-twice',
    'sk-without-scheme',
    'Basic c2stYTpi',
    'Token sk-other-scheme',
  ];

  test('that cannot be keys are rejected without a lookup', async () => {
    stack.store.calls.length = 0;
    for (const authorization of malformed) {
      const response = await stack.post(hello, { headers: { authorization } });
      expect(response.status).toBe(401);
      expectErrorBody(await response.text(), 'authentication_error', 'invalid_api_key');
    }
    // The configuration may have been read again, because the relay first checks whether it is closed.
    expect(stack.store.calls.filter((call) => call.table === 'relay-keys')).toEqual([]);
  });

  test('that could be keys are looked up once', async () => {
    stack.store.calls.length = 0;
    for (let turn = 0; turn < 3; turn += 1) {
      const response = await stack.post(hello, { headers: { authorization: 'Bearer sk-unknown' } });
      expectErrorBody(await response.text(), 'authentication_error', 'invalid_api_key');
    }
    expect(stack.store.calls.filter((call) => call.table === 'relay-keys')).toEqual([
      { action: 'GetItem', table: 'relay-keys' },
    ]);
  });

  test('are checked before the body is read', async () => {
    const response = await stack.post('{', { headers: { authorization: 'Bearer sk-unknown' } });
    expect(response.status).toBe(401);
  });
});
