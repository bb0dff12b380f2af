import { createServer, type ServerResponse } from 'node:http';
import {
  brotliCompressSync,
  constants,
  createBrotliCompress,
  createDeflate,
  createGzip,
  deflateRawSync,
  deflateSync,
  gzipSync,
} from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { createHttpsTransport } from '../../../../shared/adapters/transport/https-transport.ts';
import { openBodyEvents } from '../../../../shared/upstreams/body-events.ts';
import { run } from '../../../../shared/stream/machine.ts';
import { type UpstreamReply, UpstreamFailure } from '../../../../shared/upstreams/exchange.ts';
import { listening } from '../../../support/listening.ts';

async function replyOf(answer: (response: ServerResponse) => void): Promise<UpstreamReply> {
  const server = createServer((_request, response) => answer(response));
  const address = await listening(server);
  return createHttpsTransport({ local: true }).send(
    {
      url: `${address}/`,
      headers: {},
      body: '{}',
      connectTimeoutMs: 5000,
    },
    new AbortController().signal,
  );
}

const whole = (encoding: string, bytes: Uint8Array) =>
  replyOf((response) => response.writeHead(200, { 'content-encoding': encoding }).end(bytes));

async function read({ body }: UpstreamReply): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const bytes of body) parts.push(bytes);
  return Buffer.concat(parts).toString();
}

const text = 'data: ü€ '.repeat(10_000);

describe('an unrequested compressed reply', () => {
  test.each<[string, Uint8Array]>([
    ['gzip', gzipSync(text)],
    ['X-GZIP', gzipSync(text)],
    ['deflate', deflateSync(text)],
    ['deflate', deflateRawSync(text)],
    ['br', brotliCompressSync(text)],
    ['identity', Buffer.from(text)],
  ])('is read: %s', async (encoding, bytes) => {
    expect(await read(await whole(encoding, bytes))).toBe(text);
  });

  test.each([
    ['gzip', () => createGzip()],
    ['deflate', () => createDeflate()],
    ['br', () => createBrotliCompress({ params: { [constants.BROTLI_PARAM_QUALITY]: 4 } })],
  ])('arrives event by event, as it is sent: %s', async (encoding, create) => {
    const compressor = create();
    const event = async (name: string) => {
      compressor.write(`data: ${name}\n\n`);
      await new Promise<void>((resolve) => compressor.flush(() => resolve()));
    };
    const reply = await replyOf((response) => {
      response.writeHead(200, { 'content-encoding': encoding });
      compressor.pipe(response);
      void event('one');
    });
    const reads = reply.body[Symbol.asyncIterator]();
    expect(String((await reads.next()).value)).toBe('data: one\n\n');
    void event('two');
    expect(String((await reads.next()).value)).toBe('data: two\n\n');
    compressor.end();
    expect(await reads.next()).toEqual({ done: true, value: undefined });
  });

  test.each<[string, string, Uint8Array]>([
    ['is in an encoding that is not known', 'zstd', Buffer.from('x')],
    ['is encoded twice', 'gzip, br', Buffer.from('x')],
    ['has the name of no encoding', 'constructor', Buffer.from('x')],
    ['does not match its encoding', 'gzip', Buffer.from('{"error":"plain text"}')],
    ['ends in the middle', 'gzip', gzipSync(text).subarray(0, 100)],
  ])('and %s fails with a named error', async (_what, encoding, bytes) => {
    const failed = await read(await whole(encoding, bytes)).catch((error: unknown) => error);
    expect(failed).toMatchObject({ kind: 'encoding' });
    expect(UpstreamFailure.from(failed)?.reason).toBe('upstream_encoding');
  });

  test('is not unpacked beyond the longest allowed answer', async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, 'x'));
    expect(bomb.length).toBeLessThan(70_000);
    const { body } = await whole('gzip', bomb);
    let taken = 0;
    const limits = {
      answerBytesMax: 1024 * 1024,
      documentBytesMax: 8 * 1024 * 1024,
      lineLengthMax: 8 * 1024 * 1024,
    };
    const events = await openBodyEvents(limits, 'text/event-stream');
    async function* counted() {
      for await (const bytes of body) {
        taken += bytes.length;
        yield [bytes];
      }
    }
    const readAll = async () => {
      for await (const _events of run(counted(), events)) continue;
    };
    await expect(readAll()).rejects.toMatchObject({ kind: 'too_large' });
    expect(taken).toBeLessThan(2 * 1024 * 1024);
  });

  test.each(['before the first read', 'while a read waits'])(
    'closes the connection when it is cancelled early %s',
    async (when) => {
      const closed = Promise.withResolvers<void>();
      const reply = await replyOf((response) => {
        response.once('close', closed.resolve);
        response.writeHead(200, { 'content-encoding': 'gzip' }).flushHeaders();
      });
      const reads = reply.body[Symbol.asyncIterator]();
      const waiting = when === 'while a read waits' ? reads.next() : undefined;
      await reads.return?.();
      await closed.promise;
      expect(await waiting).toEqual(waiting && { done: true, value: undefined });
    },
  );
});
