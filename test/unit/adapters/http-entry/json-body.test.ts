import { describe, expect, test } from 'vitest';
import { readJsonBody } from '../../../../shared/adapters/http-entry/json-body.ts';
import { Refusal } from '../../../../shared/relay/http/refusal.ts';

const base64 = (bytes: string | Uint8Array) => ({
  body: Buffer.from(bytes as string).toString('base64'),
  isBase64Encoded: true,
});

function refusalOf(event: { body?: string; isBase64Encoded?: boolean }) {
  try {
    readJsonBody(event);
  } catch (error) {
    if (error instanceof Refusal) return `${error.status} ${error.body.error.code}`;
    throw error;
  }
  return 'accepted';
}

const limit = 4 * 1024 * 1024;
/** A JSON string of so many bytes. */
const sized = (bytes: number) => `"${'x'.repeat(bytes - 2)}"`;
const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);

describe('a JSON body', () => {
  test('is read from text and from base64, also after a byte order mark', () => {
    const json = '{"text":"ü€😀"}';
    for (const event of [{ body: json }, { body: `\uFEFF${json}` }, base64(json), base64(`\uFEFF${json}`)])
      expect(readJsonBody(event)).toEqual({ text: 'ü€😀' });
  });

  test.each<[string, { body?: string; isBase64Encoded?: boolean }, string]>([
    ['no body', {}, '400 empty_body'],
    ['an empty body', { body: '' }, '400 empty_body'],
    ['blanks', { body: ' \n' }, '400 empty_body'],
    ['text that is not JSON', { body: '{"a":1' }, '400 invalid_json'],
    ['two values', { body: '{} {}' }, '400 invalid_json'],
    ['bytes that are not UTF-8', base64(Buffer.from([0x22, 0xff, 0x22])), '400 invalid_encoding'],
    ['a surrogate in UTF-8', base64(Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])), '400 invalid_encoding'],
    ['exactly 4 MB', { body: sized(limit) }, 'accepted'],
    ['a byte more than 4 MB', { body: sized(limit + 1) }, '413 request_too_large'],
    ['few characters of many bytes', { body: `"${'€'.repeat(limit / 2)}"` }, '413 request_too_large'],
    ['exactly 4 MB in base64', base64(sized(limit)), 'accepted'],
    ['more than 4 MB in base64', base64(sized(limit + 3)), '413 request_too_large'],
    ['200 levels', { body: nested(200) }, 'accepted'],
    ['201 levels', { body: nested(201) }, '400 json_too_deep'],
    ['a million levels', { body: '['.repeat(1_000_000) }, '400 json_too_deep'],
    ['100,000 values', { body: `[${'0,'.repeat(99_998)}0]` }, 'accepted'],
    ['100,001 values', { body: `[${'0,'.repeat(99_999)}0]` }, '400 json_too_wide'],
    ['a million empty objects', { body: `[${'{},'.repeat(999_999)}{}]` }, '400 json_too_wide'],
    ['commas in a string', { body: `"${','.repeat(200_000)}"` }, 'accepted'],
    ['brackets in a string', { body: JSON.stringify('["\\"['.repeat(300)) }, 'accepted'],
    ['a string that never closes', { body: `{"a":"${'['.repeat(300)}` }, '400 invalid_json'],
    ['many short branches', { body: `[${'[{"a":[]}],'.repeat(500)}1]` }, 'accepted'],
  ])('with %s is %s', (_what, event, outcome) => {
    expect(refusalOf(event)).toBe(outcome);
  });

  test('keeps a key named __proto__ as data and changes no prototype', () => {
    const read = readJsonBody({ body: '{"__proto__":{"polluted":true}}' });
    expect(Object.hasOwn(read as object, '__proto__')).toBe(true);
    expect(Object.getPrototypeOf(read)).toBe(Object.prototype);
  });
});
