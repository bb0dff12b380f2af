import { once } from 'node:events';
import { createServer, request, type ClientRequest, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { writeBody } from '../../../../shared/adapters/entry/lambda-handlers.ts';
import { AnswerCut } from '../../../../shared/relay/http/http.ts';

const unexpected = (error: unknown): never => {
  throw error;
};

/** A request to a Runtime API as AWS's client makes it, and its server side. */
async function open(): Promise<{ stream: ClientRequest; received: IncomingMessage }> {
  const arrived = Promise.withResolvers<IncomingMessage>();
  const server = createServer((incoming, response) => {
    incoming.once('end', () => response.end());
    arrived.resolve(incoming);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const stream = request({ port, method: 'POST' });
  stream.on('error', () => undefined);
  stream.flushHeaders();
  const received = await arrived.promise;
  received.on('error', () => undefined);
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { stream, received };
}

async function* texts(...all: string[]) {
  yield* all;
}

/** Exceeds all buffers between the two sides. */
async function* flood(onAsked: (count: number) => void = () => undefined) {
  for (let count = 1; count <= 1000; count += 1) {
    onAsked(count);
    yield 'x'.repeat(100_000);
  }
}

describe('the body written to the runtime', () => {
  test.each<[string, string | AsyncIterable<string>, string]>([
    ['a text', 'whole', 'whole'],
    ['an empty text', '', ''],
    ['a sequence of texts', texts('a', 'ü'), 'aü'],
    ['an empty sequence', texts(), ''],
  ])('is %s, and ends', async (_what, body, whole) => {
    const { stream, received } = await open();
    const written = writeBody(stream, { body }, unexpected);
    expect(await text(received)).toBe(whole);
    await written;
  });

  test('is aborted, not ended, when its source fails, and the failure is reported', async () => {
    const faults: unknown[] = [];
    const bug = new Error('a bug');
    async function* failing() {
      yield 'said';
      throw bug;
    }
    const { stream, received } = await open();
    await writeBody(stream, { body: failing() }, (error) => faults.push(error));
    await expect(text(received)).rejects.toThrow('aborted');
    expect(faults).toEqual([bug]);
  });

  test('is aborted where its source cuts it, which is not reported as a failure', async () => {
    async function* cut() {
      yield 'said';
      throw new AnswerCut();
    }
    const { stream, received } = await open();
    await writeBody(stream, { body: cut() }, unexpected);
    await expect(text(received)).rejects.toThrow('aborted');
  });

  test.each(['by its source', 'from outside', 'by both'])(
    'is aborted after status and headers, not before, when it is cut before its first text: %s',
    async (who) => {
      const called: string[] = [];
      const closed = Promise.withResolvers<void>();
      const stream = {
        destroyed: false,
        write(text: string, done?: () => void) {
          called.push(`write ${JSON.stringify(text)}`);
          setImmediate(() => done?.());
          return true;
        },
        end: () => called.push('end'),
        destroy() {
          called.push('destroy');
          this.destroyed = true;
          closed.resolve();
        },
        once: (event: string, listener: () => void) =>
          event === 'close' ? closed.promise.then(listener) : undefined,
      };
      const source = Promise.withResolvers<IteratorResult<string>>();
      const body = { [Symbol.asyncIterator]: () => ({ next: () => source.promise, return: stop }) };
      const stop = (): Promise<IteratorResult<string>> => {
        source.resolve({ done: true, value: undefined });
        return source.promise;
      };
      const outside = Promise.withResolvers<AnswerCut>();
      const written = writeBody(stream, { body, cut: outside.promise }, unexpected);
      if (who !== 'by its source') outside.resolve(new AnswerCut());
      if (who !== 'from outside') source.reject(new AnswerCut());
      await written;
      expect(called).toEqual(['write ""', 'destroy']);
    },
  );

  test('is aborted at once when it is cut while the client does not read', async () => {
    const { stream } = await open();
    const cut = Promise.withResolvers<AnswerCut>();
    const written = writeBody(stream, { body: flood(), cut: cut.promise }, unexpected);
    const closed = new Promise((resolve) => stream.once('close', resolve));
    cut.resolve(new AnswerCut());
    await closed;
    await written;
    expect(stream.destroyed).toBe(true);
  });

  test('cancels its source when the client disconnects, even while waiting for the source', async () => {
    let left = 0;
    const reading = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<IteratorResult<string>>();
    const body: AsyncIterable<string> = {
      [Symbol.asyncIterator]: () => ({
        next: () => {
          reading.resolve();
          return ended.promise;
        },
        return: async () => {
          left += 1;
          ended.resolve({ done: true, value: undefined });
          return { done: true, value: undefined };
        },
      }),
    };
    const { stream, received } = await open();
    const written = writeBody(stream, { body }, unexpected);
    await reading.promise;
    received.socket.resetAndDestroy();
    await written;
    expect(left).toBe(1);
  });

  test('requests its next text only after the connection accepted the previous one', async () => {
    const { stream, received } = await open();
    let asked = 0;
    const body = flood((count) => {
      asked = count;
    });
    const written = writeBody(stream, { body }, unexpected);
    for (let before = -1; before !== asked;) {
      before = asked;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(asked).toBeLessThan(1000);
    received.resume();
    await written;
    expect(asked).toBe(1000);
  });

  test('writes its last text and its end to the connection at once', async () => {
    const { stream } = await open();
    const socket = stream.socket;
    const writes: string[] = [];
    const seen = (chunk: unknown): void => void writes.push(String(chunk));
    if (!socket) throw new Error('no connection');
    const all = socket._writev?.bind(socket);
    const one = socket._write.bind(socket);
    socket._writev = (chunks, done) => {
      seen(chunks.map(({ chunk }) => String(chunk)).join(''));
      all?.(chunks, done);
    };
    socket._write = (chunk, encoding, done) => {
      seen(chunk);
      one(chunk, encoding, done);
    };
    let ended = false;
    async function* said() {
      yield 'first';
      yield 'last';
      await Promise.resolve();
    }
    const body = said();
    const next = body.next.bind(body);
    body.next = async () => {
      const read = await next();
      ended = read.value === 'last';
      return read;
    };
    await writeBody(stream, { body, endsHere: () => ended }, unexpected);
    expect(writes).toEqual(['5\r\nfirst\r\n', '4\r\nlast\r\n0\r\n\r\n']);
  });

  test('cancels its source when the connection broke before the answer', async () => {
    const { stream } = await open();
    const closed = new Promise((resolve) => stream.once('close', resolve));
    stream.destroy();
    await closed;
    let left = 0;
    const body: AsyncIterable<string> = {
      [Symbol.asyncIterator]: () => ({
        next: async () => ({ done: false, value: 'said' }),
        return: async () => {
          left += 1;
          return { done: true, value: undefined };
        },
      }),
    };
    await writeBody(stream, { body }, unexpected);
    await writeBody(stream, { body: 'whole' }, unexpected);
    expect(left).toBe(1);
  });
});
