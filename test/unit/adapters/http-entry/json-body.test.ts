import { describe, expect, test } from 'vitest';
import { readJsonBody } from '../../../../shared/adapters/entry/http-entry.ts';
import { Refusal } from '../../../../shared/relay/http/refusal.ts';

const bytes = (text: string): Uint8Array => Buffer.from(text);

function refusalOf(body: string | Uint8Array) {
  try {
    readJsonBody(body);
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
  test('is read from text and from bytes, also after a byte order mark', () => {
    const json = '{"text":"ü€😀"}';
    for (const body of [json, `\uFEFF${json}`, bytes(json), bytes(`\uFEFF${json}`)])
      expect(readJsonBody(body)).toEqual({ text: 'ü€😀' });
  });

  test.each<[string, string | Uint8Array, string]>([
    ['no text', '', '400 empty_body'],
    ['no bytes', bytes(''), '400 empty_body'],
    ['blanks', ' \n', '400 empty_body'],
    ['text that is not JSON', '{"a":1', '400 invalid_json'],
    ['two values', '{} {}', '400 invalid_json'],
    ['bytes that are not UTF-8', Buffer.from([0x22, 0xff, 0x22]), '400 invalid_encoding'],
    ['a surrogate in UTF-8', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), '400 invalid_encoding'],
    ['exactly 4 MB', sized(limit), 'accepted'],
    ['a byte more than 4 MB', sized(limit + 1), '413 request_too_large'],
    ['few characters of many bytes', `"${'€'.repeat(limit / 2)}"`, '413 request_too_large'],
    ['exactly 4 MB of bytes', bytes(sized(limit)), 'accepted'],
    ['more than 4 MB of bytes', bytes(sized(limit + 1)), '413 request_too_large'],
    ['200 levels', nested(200), 'accepted'],
    ['201 levels', nested(201), '400 json_too_deep'],
    ['a million levels', '['.repeat(1_000_000), '400 json_too_deep'],
    ['100,000 values', `[${'0,'.repeat(99_998)}0]`, 'accepted'],
    ['100,001 values', `[${'0,'.repeat(99_999)}0]`, '400 json_too_wide'],
    ['a million empty objects', `[${'{},'.repeat(999_999)}{}]`, '400 json_too_wide'],
    ['commas in a string', `"${','.repeat(200_000)}"`, 'accepted'],
    ['brackets in a string', JSON.stringify('["\\"['.repeat(300)), 'accepted'],
    ['a string that never closes', `{"a":"${'['.repeat(300)}`, '400 invalid_json'],
    ['many short branches', `[${'[{"a":[]}],'.repeat(500)}1]`, 'accepted'],
  ])('with %s is %s', (_what, body, outcome) => {
    expect(refusalOf(body)).toBe(outcome);
  });

  test('keeps a key named __proto__ as data and changes no prototype', () => {
    const read = readJsonBody('{"__proto__":{"polluted":true}}');
    expect(Object.hasOwn(read as object, '__proto__')).toBe(true);
    expect(Object.getPrototypeOf(read)).toBe(Object.prototype);
  });
});
