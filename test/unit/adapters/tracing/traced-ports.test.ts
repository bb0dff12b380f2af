import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { CallTrace, type Span } from '../../../../shared/adapters/tracing/call-trace.ts';
import { tracePorts } from '../../../../shared/adapters/tracing/call-tracer.ts';
import { systemClock } from '../../../../shared/adapters/system/node-ports.ts';
import { createHttpsTransport } from '../../../../shared/adapters/transport/https-transport.ts';
import type { ChatPorts } from '../../../../shared/relay/ports/chat-ports.ts';
import type { UpstreamReply } from '../../../../shared/upstreams/exchange.ts';
import { readFailure } from '../../../../shared/upstreams/read-failure.ts';
import { listening } from '../../../support/listening.ts';

/** A reply through a traced transport from an upstream that never ends it. */
async function replyOf(listener: RequestListener) {
  const closed = Promise.withResolvers<void>();
  const server = createServer((request, response: ServerResponse) => {
    response.once('close', closed.resolve);
    listener(request, response);
  });
  const address = await listening(server);
  const trace = new CallTrace(systemClock, { sampled: true });
  const none = { keys: {}, quotas: {}, secrets: {}, stored: {} };
  const ports = { ...none, transport: createHttpsTransport({ local: true }) } as ChatPorts;
  const { transport } = tracePorts(ports, () => trace);
  const url = `${address}/v1`;
  const request = { url, headers: {}, body: '{}', connectTimeoutMs: 5_000 };
  const reply: UpstreamReply = await transport.send(request, new AbortController().signal);
  const span = (): Span | undefined => trace.spans.find(({ name }) => name === 'upstream');
  return { reply, span, closed: closed.promise };
}

const withStatus =
  (status: number): RequestListener =>
  (_request, response) =>
    void response.writeHead(status).write('{"error":');

test.each([401, 402, 403, 500, 503])(
  'an unread answer with status %i releases its connection, and its span ends',
  async (status) => {
    const { reply, span, closed } = await replyOf(withStatus(status));
    await readFailure(reply, { withheld: [] });
    await closed;
    expect(span()).toMatchObject({ endMs: expect.any(Number), error: String(status) });
  },
);

test('a 429 whose body never ends times out: the connection closes, and its span ends', async () => {
  const { reply, span, closed } = await replyOf(withStatus(429));
  const clock = {
    now: () => Date.now(),
    sleep: () => new Promise<void>((resolve) => void setImmediate(resolve)),
  };
  await readFailure(reply, { withheld: [], clock });
  await closed;
  expect(span()).toMatchObject({ endMs: expect.any(Number), error: '429' });
});

test.each(['before the first read', 'while a read waits'])(
  'an answer that is cancelled %s closes its connection at once',
  async (when) => {
    const { reply, span, closed } = await replyOf(withStatus(200));
    const reads = reply.body[Symbol.asyncIterator]();
    if (when !== 'before the first read') await reads.next();
    const waiting = when === 'while a read waits' ? reads.next() : undefined;
    void reads.return?.();
    expect(span()?.endMs).toEqual(expect.any(Number));
    await closed;
    expect(await (waiting ?? reads.next())).toEqual({ done: true, value: undefined });
    expect(span()?.error).toBeUndefined();
  },
);

test('an answer that breaks rejects the read, and its span records the failure', async () => {
  const { reply, span } = await replyOf((_request, response) => {
    response.writeHead(200).write('data');
    setImmediate(() => response.socket?.resetAndDestroy());
  });
  const read = async (): Promise<void> => {
    for await (const _bytes of reply.body);
  };
  await expect(read()).rejects.toMatchObject({ kind: 'reset' });
  expect(span()).toMatchObject({ endMs: expect.any(Number), error: 'TransportError' });
});
