import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openBodyEvents, type UpstreamEvent } from '../../../shared/upstreams/body-events.ts';
import { readErrorInAnswer } from '../../../shared/upstreams/read-failure.ts';
import { ErrorInAnswer } from '../../../shared/upstreams/exchange.ts';

const limits = { answerBytesMax: 1e6, documentBytesMax: 1e6, lineLengthMax: 1e5 };
const contentType = 'application/vnd.amazon.eventstream';

/** A frame with Node's own checksum. Headers are texts, or raw bytes of another value type. */
function frame(headers: Record<string, string | Buffer>, payload: string): Buffer {
  const head = Buffer.concat(
    Object.entries(headers).map(([name, value]) => {
      const length = Buffer.alloc(2);
      length.writeUInt16BE(Buffer.byteLength(value));
      const written = typeof value === 'string' ? [Buffer.of(7), length, Buffer.from(value)] : [value];
      return Buffer.concat([Buffer.of(Buffer.byteLength(name)), Buffer.from(name), ...written]);
    }),
  );
  const body = Buffer.from(payload);
  const prelude = Buffer.alloc(8);
  prelude.writeUInt32BE(16 + head.length + body.length, 0);
  prelude.writeUInt32BE(head.length, 4);
  const counted = (bytes: Buffer): Buffer => {
    const sum = Buffer.alloc(4);
    sum.writeUInt32BE(crc32(bytes));
    return Buffer.concat([bytes, sum]);
  };
  return counted(Buffer.concat([counted(prelude), head, body]));
}

const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64');
const chunk = (value: unknown): Buffer =>
  frame(
    { ':message-type': 'event', ':event-type': 'chunk' },
    JSON.stringify({ bytes: base64(value), p: 'abcd' }),
  );
const exception = (name: string, message = 'words'): Buffer =>
  frame({ ':message-type': 'exception', ':exception-type': name }, JSON.stringify({ message }));

/** The decoded events, piece by piece, and the final error. */
async function read(
  pieces: Uint8Array[],
  type = contentType,
): Promise<{ events: UpstreamEvent[]; error: unknown }> {
  const body = await openBodyEvents(limits, type);
  const events: UpstreamEvent[] = [];
  try {
    for (const piece of pieces) events.push(...body.push(piece));
    events.push(...body.end());
  } catch (error) {
    return { events, error };
  }
  return { events, error: undefined };
}

const values = [{ type: 'message_start' }, { text: 'ü€😀' }, { type: 'message_stop' }];
const asEvents = values.map((value) => ({ kind: 'value', value }));
const stream = Buffer.concat(values.map(chunk));

describe('an answer in AWS event stream frames', () => {
  it('is decoded to its values however its bytes are cut', async () => {
    expect(await read([stream])).toEqual({ events: asEvents, error: undefined });
    expect((await read([...stream].map((byte) => Uint8Array.of(byte)))).events).toEqual(asEvents);
    for (let cut = 0; cut <= stream.length; cut += 1)
      expect((await read([stream.subarray(0, cut), stream.subarray(cut)])).events).toEqual(asEvents);
  });

  it('is decoded only if the content type announces it', async () => {
    expect((await read([stream], 'text/event-stream')).events).toEqual([]);
  });
});

describe('an exception in the stream', () => {
  it.each([
    ['throttlingException', { kind: 'status', status: 429 }],
    ['internalServerException', { kind: 'status', status: 500 }],
    ['modelStreamErrorException', { kind: 'status', status: 424 }],
    ['modelTimeoutException', { kind: 'status', status: 408 }],
    ['serviceUnavailableException', { kind: 'status', status: 503 }],
    ['ThrottlingException', { kind: 'status', status: 429 }],
  ])('%s is treated like the equivalent status, after the values before it', async (name, failure) => {
    const bytes = Buffer.concat([stream, exception(name)]);
    const whole = await read([bytes]);
    expect(whole.events).toEqual(asEvents);
    expect(whole.error).toMatchObject(failure);
    expect(await read([...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(whole);
  });

  it('of validation is an error in the answer, and a prompt that is too long is named so', async () => {
    const { error } = await read([
      exception('validationException', 'Input is too long for requested model.'),
    ]);
    if (!(error instanceof ErrorInAnswer)) throw new Error('another error');
    expect(readErrorInAnswer(error.error, { withheld: [] })).toMatchObject({
      status: 400,
      code: 'context_length_exceeded',
    });
    expect((await read([exception('somethingNew')])).error).toMatchObject({
      error: { type: 'somethingNew' },
    });
  });
});

describe('a broken stream', () => {
  it.each([
    ['cut in a message', stream.subarray(0, -1), 'cut', asEvents.slice(0, 2)],
    ['cut in a prelude', Buffer.concat([chunk(1), Buffer.of(0, 0)]), 'cut', [{ kind: 'value', value: 1 }]],
    ['a text', Buffer.from('data: {"a":1}\n\n'), 'junk', []],
    ['a length beyond the limit', longFrame(), 'too_large', []],
  ])('%s fails after the values before it', async (_case, bytes, kind, events) => {
    expect(await read([bytes])).toMatchObject({ events, error: { kind } });
  });

  it('with any byte changed fails, and never yields another value', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(stream.length - 1), fc.integer({ min: 1, max: 255 }), async (at, change) => {
        const bytes = Buffer.from(stream);
        bytes[at] = (bytes[at] ?? 0) ^ change;
        const { events, error } = await read([bytes]);
        expect(error).toMatchObject({ kind: expect.stringMatching(/junk|cut|too_large/) as unknown });
        expect(asEvents).toEqual(expect.arrayContaining(events));
      }),
      { numRuns: 300 },
    );
  });

  it.each([
    ['a header that leads out of the message', Buffer.of(200, 1)],
    ['a header of an unknown kind', Buffer.of(1, 97, 99, 255, 255)],
  ])('%s fails', async (_case, head) => {
    expect((await read([withHeaders(head)])).error).toMatchObject({ kind: 'junk' });
  });
});

/** A prelude that announces a megabyte. */
function longFrame(): Buffer {
  const prelude = Buffer.alloc(12);
  prelude.writeUInt32BE(1e6, 0);
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8);
  return prelude;
}

function withHeaders(head: Buffer): Buffer {
  const bytes = Buffer.alloc(16 + head.length);
  bytes.writeUInt32BE(bytes.length, 0);
  bytes.writeUInt32BE(head.length, 4);
  bytes.writeUInt32BE(crc32(bytes.subarray(0, 8)), 8);
  head.copy(bytes, 12);
  bytes.writeUInt32BE(crc32(bytes.subarray(0, -4)), bytes.length - 4);
  return bytes;
}
