import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { readJsonBody, type SharedHost } from '../../../../shared/adapters/entry/http-entry.ts';
import { Refusal } from '../../../../shared/relay/http/refusal.ts';

const megabyte = 1024 * 1024;
const bytes = (text: string): Buffer => Buffer.from(text);

/** A server with this much room, and the room that is used. */
function serverOf(bodyBytesMax: number, roomBytes = Infinity) {
  const seen = { taken: 0, most: 0, turns: [] as number[] };
  const host: SharedHost = {
    bodyBytesMax,
    room: {
      take(count) {
        if (seen.taken + count > roomBytes) return false;
        seen.taken += count;
        seen.most = Math.max(seen.most, seen.taken);
        return true;
      },
      give: (count) => void (seen.taken -= count),
    },
    turn: async (count) => void seen.turns.push(count),
  };
  return { host, seen };
}

async function refusalOf(body: string | Uint8Array, encoding?: string, host?: SharedHost) {
  try {
    await readJsonBody(body, encoding, host);
  } catch (error) {
    if (error instanceof Refusal) return `${error.status} ${error.body.error.code}`;
    throw error;
  }
  return 'accepted';
}

const limit = 6 * megabyte;
/** A JSON string of this many bytes. */
const sized = (length: number) => `"${'x'.repeat(length - 2)}"`;
const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
/** A list of this many values, in at least this many bytes. */
const listed = (count: number, length = 0) => `[${'0,'.repeat(count - 2)}0]`.padEnd(length);

describe('a JSON body', () => {
  test('is read from text and from bytes, also after a byte order mark', async () => {
    const json = '{"text":"ü€😀"}';
    for (const body of [json, `\uFEFF${json}`, bytes(json), bytes(`\uFEFF${json}`)])
      expect(await readJsonBody(body)).toEqual({ text: 'ü€😀' });
  });

  // The body comes last, because the title shows the first two columns.
  test.each<[string, string, string | Uint8Array]>([
    ['no text', '400 empty_body', ''],
    ['no bytes', '400 empty_body', bytes('')],
    ['blanks', '400 empty_body', ' \n'],
    ['text that is not JSON', '400 invalid_json', '{"a":1'],
    ['two values', '400 invalid_json', '{} {}'],
    ['bytes that are not UTF-8', '400 invalid_encoding', Buffer.from([0x22, 0xff, 0x22])],
    ['a surrogate in UTF-8', '400 invalid_encoding', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])],
    ['exactly 6 MB', 'accepted', sized(limit)],
    ['a byte more than 6 MB', '413 request_too_large', sized(limit + 1)],
    ['few characters of many bytes', '413 request_too_large', `"${'€'.repeat(limit / 2)}"`],
    ['exactly 6 MB of bytes', 'accepted', bytes(sized(limit))],
    ['more than 6 MB of bytes', '413 request_too_large', bytes(sized(limit + 1))],
    ['200 levels', 'accepted', nested(200)],
    ['201 levels', '400 json_too_deep', nested(201)],
    ['a million levels', '400 json_too_deep', '['.repeat(1_000_000)],
    ['100,000 values', 'accepted', listed(100_000)],
    ['100,001 values', '400 json_too_wide', listed(100_001)],
    ['150,000 values in 6 MB', 'accepted', listed(150_000, limit)],
    ['150,001 values in 6 MB', '400 json_too_wide', listed(150_001, limit)],
    ['a million empty objects', '400 json_too_wide', `[${'{},'.repeat(999_999)}{}]`],
    ['commas in a string', 'accepted', `"${','.repeat(200_000)}"`],
    ['brackets in a string', 'accepted', JSON.stringify('["\\"['.repeat(300))],
    ['a string that never closes', '400 invalid_json', `{"a":"${'['.repeat(300)}`],
    ['many short branches', 'accepted', `[${'[{"a":[]}],'.repeat(500)}1]`],
  ])('with %s is %s', async (_what, outcome, body) => {
    expect(await refusalOf(body)).toBe(outcome);
  });

  test('keeps a key named __proto__ as data and changes no prototype', async () => {
    const read = await readJsonBody('{"__proto__":{"polluted":true}}');
    expect(Object.hasOwn(read as object, '__proto__')).toBe(true);
    expect(Object.getPrototypeOf(read)).toBe(Object.prototype);
  });
});

const packers: [string, (body: Uint8Array) => Buffer][] = [
  ['gzip', gzipSync],
  ['zstd', zstdCompressSync],
  ['br', (body) => brotliCompressSync(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } })],
];
const json = bytes('{"model":"m"}');

describe('a compressed body', () => {
  test.each([...packers, ['GZIP', gzipSync] as const, [' x-gzip ', gzipSync] as const])(
    'is read in %s',
    async (encoding, pack) => {
      expect(await readJsonBody(pack(json), encoding)).toEqual({ model: 'm' });
    },
  );

  test.each(['', 'identity'])('is read unchanged with the header %j', async (encoding) => {
    expect(await readJsonBody(json, encoding)).toEqual({ model: 'm' });
  });

  test.each(['deflate', 'compress', 'gzip, gzip', 'br,gzip', 'gzip;q=1', 'constructor', '__proto__'])(
    'is rejected by name in %s',
    async (encoding) => {
      const error = await readJsonBody(gzipSync(gzipSync(json)), encoding).catch((each: unknown) => each);
      expect(error).toMatchObject({
        status: 415,
        body: { error: { code: 'unsupported_content_encoding' } },
        headers: { 'accept-encoding': 'gzip, zstd, br' },
      });
    },
  );

  describe.each(packers)('in %s', (encoding, pack) => {
    const packed = pack(json);
    test.each<[string, string | Uint8Array]>([
      ['is something else', json],
      ['is cut', packed.subarray(0, -3)],
      ['is empty', ''],
      ['has other bytes after its end', Buffer.concat([packed, json])],
      ['is compressed twice', pack(pack(json))],
    ])('that %s is rejected', async (_what, body) => {
      expect(await refusalOf(body, encoding)).toBe('400 invalid_encoding');
    });

    const full = Buffer.alloc(limit, ' ');
    json.copy(full);
    test.each<[string, Uint8Array, string]>([
      ['to 6 MB', pack(full), 'accepted'],
      ['to a byte more', pack(Buffer.concat([full, bytes(' ')])), '413 request_too_large'],
      ['from a bomb', pack(Buffer.alloc(64 * megabyte)), '413 request_too_large'],
      ['from more than 6 MB', Buffer.alloc(limit + 1), '413 request_too_large'],
    ])('is unpacked to 6 MB and no further: %s', async (_what, body, outcome) => {
      expect(await refusalOf(body, encoding)).toBe(outcome);
    });
  });

  test('in several parts is limited as a whole in gzip, and rejected in other encodings', async () => {
    const half = bytes(' '.repeat(limit / 2));
    const two = [gzipSync(json), gzipSync(half)];
    expect(await readJsonBody(Buffer.concat(two), 'gzip')).toEqual({ model: 'm' });
    expect(await refusalOf(Buffer.concat([...two, gzipSync(half)]), 'gzip')).toBe('413 request_too_large');
    for (const [encoding, pack] of packers.slice(1))
      expect(await refusalOf(Buffer.concat([pack(json), pack(half)]), encoding)).toBe('400 invalid_encoding');
  });

  test('in zstd may need a window of 8 MB, but not more', async () => {
    const body = Buffer.alloc(limit, ' ');
    json.copy(body);
    const packed = (windowLog: number) =>
      zstdCompressSync(Buffer.concat([body, body]), {
        params: { [constants.ZSTD_c_windowLog]: windowLog },
      });
    const { host } = serverOf(16 * megabyte);
    expect(await refusalOf(packed(23), 'zstd', host)).toBe('400 invalid_json');
    expect(await refusalOf(packed(24), 'zstd', host)).toBe('400 invalid_encoding');
  });
});

describe('a body on a server', () => {
  test.each<[string, string, number]>([
    ['of exactly its limit', 'accepted', 9 * megabyte],
    ['of a byte more', '413 request_too_large', 9 * megabyte + 1],
  ])('%s is %s', async (_what, outcome, length) => {
    const { host } = serverOf(9 * megabyte);
    expect(await refusalOf(bytes(sized(length)), undefined, host)).toBe(outcome);
    for (const [encoding, pack] of packers)
      expect(await refusalOf(pack(bytes(sized(length))), encoding, host)).toBe(outcome);
  });

  test('may have at most 200,000 values, however large it is', async () => {
    const { host } = serverOf(9 * megabyte);
    expect(await refusalOf(listed(200_000, 9 * megabyte), undefined, host)).toBe('accepted');
    expect(await refusalOf(listed(200_001, 9 * megabyte), undefined, host)).toBe('400 json_too_wide');
  });

  test('that is too large is rejected with the limit, the compute and a way out', async () => {
    const { host } = serverOf(9 * megabyte);
    const words = async (on?: SharedHost) =>
      ((await readJsonBody(sized(10 * megabyte), '', on).catch((each: unknown) => each)) as Error).message;
    expect(await words()).toMatch(/6291456 bytes \(6 MB\).*functions|functions.*6291456 bytes \(6 MB\)/);
    expect(await words(host)).toMatch(/server.*9437184 bytes \(9 MB\).*64 MB/);
    for (const on of [undefined, host]) expect(await words(on)).toMatch(/Send fewer or smaller images/);
  });

  test('reserves room for its largest possible size while it is unpacked, then for its real size and values', async () => {
    const { host, seen } = serverOf(9 * megabyte);
    const body = bytes(listed(1_000, 500_000));
    expect(await refusalOf(gzipSync(body), 'gzip', host)).toBe('accepted');
    expect(seen).toEqual({ most: 9 * megabyte, taken: 500_000 + 40_000, turns: [500_000, 500_000] });
  });

  test("returns all room when it can't be unpacked, and is asked to retry when there is no room", async () => {
    const { host, seen } = serverOf(9 * megabyte);
    expect(await refusalOf(json, 'zstd', host)).toBe('400 invalid_encoding');
    expect(await refusalOf(gzipSync(Buffer.alloc(10 * megabyte)), 'gzip', host)).toBe(
      '413 request_too_large',
    );
    expect(seen).toMatchObject({ taken: 0, turns: [] });
    const full = serverOf(9 * megabyte, 8 * megabyte).host;
    for (const [body, encoding] of [[gzipSync(json), 'gzip'] as const, [listed(100_000, megabyte)] as const])
      expect(await refusalOf(body, encoding, serverOf(9 * megabyte, 3 * megabyte).host)).toBe(
        '503 unavailable',
      );
    const error = await readJsonBody(gzipSync(json), 'gzip', full).catch((each: unknown) => each);
    expect(error).toMatchObject({ headers: { 'retry-after': '1' }, reason: 'server_no_room' });
  });
});
