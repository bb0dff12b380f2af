import { once } from 'node:events';
import { Agent, request, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { buffer, text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Arrivals, createByteBudget } from '../../infra/server/request-body.ts';
import { healthPath, WebServer } from '../../infra/server/web-server.ts';
import { createHttpEntry } from '../../shared/adapters/entry/http-entry.ts';
import { systemClock as clock, timeSortedIds } from '../../shared/adapters/system/node-ports.ts';
import {
  AnswerCut,
  type HostedHandle,
  type RelayRequest,
  type RelayResponse,
} from '../../shared/relay/http/http.ts';
import type { RequestLog } from '../../shared/relay/ports/telemetry.ts';

/** The server alone, with test handles behind it. */
interface Stand {
  server: WebServer;
  port: number;
  lines: RequestLog[];
  faults: unknown[];
}

const secret = 'shown by the distribution';
const megabyte = 1024 * 1024;

interface Bounds {
  requestBytesMax?: number;
  bodyBytesMax?: number;
  requestsMax?: number;
  arrivalMs?: number;
  slowMs?: number;
}

async function serving(
  handle: (request: RelayRequest) => Promise<Partial<RelayResponse>>,
  {
    requestBytesMax = 6 * megabyte,
    bodyBytesMax = 64 * megabyte,
    requestsMax = 100,
    ...timeouts
  }: Bounds = {},
): Promise<Stand> {
  const lines: RequestLog[] = [];
  const faults: unknown[] = [];
  const hosted: HostedHandle = {
    handle: async (asked) => ({
      status: 200,
      headers: { 'x-request-id': asked.id },
      body: '',
      done: Promise.resolve(),
      ...(await handle(asked)),
    }),
    clock,
    ids: timeSortedIds(clock),
    log: {
      request: (line) => lines.push(line),
      event: () => undefined,
      fault: (_, error) => faults.push(error),
    },
    originSecrets: [secret],
    local: true,
  };
  const server = new WebServer({
    route: () => ({ name: 'chat', hosted, enter: createHttpEntry(hosted) }),
    options: { requestBytesMax, requestsMax },
    room: createByteBudget(bodyBytesMax),
    threads: {},
    publicHost: undefined,
    timeouts,
  });
  const { port } = await server.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(async () => void (await server.end(0)));
  return { server, port, lines, faults };
}

interface Sent {
  method?: string;
  path?: string;
  headers?: Record<string, string>;
  body?: string | Buffer | Iterable<string>;
  agent?: Agent;
}

async function open(
  { port }: Stand,
  { method = 'POST', path = '/v1/chat/completions', headers, body = '', agent }: Sent = {},
): Promise<IncomingMessage> {
  const all = { 'x-relay-origin': secret, authorization: 'Bearer sk-x', ...headers };
  const sent = request({ port, method, path, headers: all, ...(agent && { agent }) });
  if (typeof body === 'string' || Buffer.isBuffer(body)) sent.end(body);
  else {
    for (const piece of body) sent.write(piece);
    sent.end();
  }
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  answer.on('error', () => undefined);
  return answer;
}

async function exchange(
  stand: Stand,
  sent: Sent = {},
): Promise<{ status: number; text: string; code: string }> {
  const answer = await open(stand, sent);
  const all = await text(answer);
  return { status: answer.statusCode ?? 0, text: all, code: /"code":"(\w+)"/.exec(all)?.[1] ?? '' };
}

const bytesOf = (asked: RelayRequest): Uint8Array => Buffer.from(asked.rawBody());

/** A handle that reads its body and then waits until it is released. */
function holding(): {
  go: (this: void) => void;
  handle: (this: void, asked: RelayRequest) => Promise<Partial<RelayResponse>>;
  until: (this: void, count: number) => Promise<void>;
} {
  const go = Promise.withResolvers<void>();
  const arrivals: (() => void)[] = [];
  const bodies: number[] = [];
  return {
    go: go.resolve,
    async handle(asked: RelayRequest): Promise<Partial<RelayResponse>> {
      const { length } = bytesOf(asked);
      bodies.push(length);
      for (const arrival of arrivals) arrival();
      await go.promise;
      return { body: String(length) };
    },
    async until(count: number): Promise<void> {
      while (bodies.length < count) await new Promise<void>((resolve) => arrivals.push(resolve));
    },
  };
}

test('a repeated header keeps both values, as on Lambda, although Node would keep the first', async () => {
  const stand = await serving(({ headers }) =>
    Promise.resolve({ body: [headers['authorization'], headers['idempotency-key']].join(' | ') }),
  );
  const twice = (one: string) => [one, `${one}2`] as unknown as string;
  const headers = { authorization: twice('Bearer sk-a'), 'idempotency-key': twice('k') };
  expect((await exchange(stand, { headers })).text).toBe('Bearer sk-a, Bearer sk-a2 | k, k2');
  const { status, code } = await exchange(stand, { headers: { 'x-relay-origin': twice(secret) } });
  expect([status, code]).toEqual([403, 'origin_denied']);
});

describe('a request body', () => {
  test('beyond the budget of all bodies in flight gets 503 with Retry-After, and a body that fits is served', async () => {
    const { go, handle, until } = holding();
    const stand = await serving(handle, { bodyBytesMax: megabyte });
    const body = Buffer.alloc(700_000, 'x');
    const held = exchange(stand, { body });
    await until(1);
    const answer = await open(stand, { body });
    expect(answer.statusCode).toBe(503);
    expect(answer.headers).toMatchObject({ 'retry-after': '1', 'content-type': 'application/json' });
    expect(JSON.parse(await text(answer))).toMatchObject({ error: { code: 'unavailable' } });
    expect(stand.lines).toMatchObject([
      {
        request_id: answer.headers['x-request-id'],
        endpoint: 'server',
        status: 503,
        reason: 'server_no_room',
      },
    ]);
    go();
    expect(await held).toMatchObject({ status: 200, text: '700000' });
    expect(await exchange(stand, { body })).toMatchObject({ status: 200, text: '700000' });
  });

  test('without a length, or with a budget that runs out while it arrives, is limited the same way', async () => {
    const { go, handle, until } = holding();
    const stand = await serving(handle, { bodyBytesMax: megabyte });
    const pieces = Array.from({ length: 70 }, () => 'x'.repeat(10_000));
    const held = exchange(stand, { body: pieces });
    await until(1);
    expect(await exchange(stand, { body: pieces })).toMatchObject({ status: 503, code: 'unavailable' });
    go();
    expect(await held).toMatchObject({ status: 200, text: '700000' });
  });

  test('that is compressed counts with its maximum size until it is decompressed, then with its actual size', async () => {
    const bounds = { requestBytesMax: megabyte, bodyBytesMax: 1.5 * megabyte };
    const json = `{"text":"${'x'.repeat(400_000)}"}`;
    const sent = { body: gzipSync(json), headers: { 'content-encoding': 'gzip' } };
    const go = Promise.withResolvers<void>();
    let arrived = 0;
    const stand = await serving(async (asked) => {
      const code = await asked.json().then(
        () => 'read',
        ({ reason }: { reason: string }) => reason,
      );
      arrived += 1;
      if (code === 'read') await go.promise;
      return { body: code };
    }, bounds);
    const held = exchange(stand, sent);
    await expect.poll(() => arrived).toBe(1);
    // 1.1 MB are free: enough to decompress one more, which leaves 0.7 MB.
    const next = exchange(stand, sent);
    await expect.poll(() => arrived).toBe(2);
    expect(await exchange(stand, sent)).toMatchObject({ text: 'server_no_room' });
    go.resolve();
    for (const one of [held, next]) expect(await one).toMatchObject({ text: 'read' });
    expect(await exchange(stand, sent)).toMatchObject({ text: 'read' });
  });

  test('above the limit gets 413, announced or not, without reaching the relay, and is served at the limit', async () => {
    const stand = await serving(async (asked) => ({ body: String(bytesOf(asked).length) }));
    expect(await exchange(stand, { body: Buffer.alloc(6 * megabyte, 'x') })).toMatchObject({
      text: '6291456',
    });
    const refused = { status: 413, code: 'request_too_large' };
    expect(await exchange(stand, { body: Buffer.alloc(6 * megabyte + 1, 'x') })).toMatchObject(refused);
    const pieces = Array.from({ length: 62 }, () => 'x'.repeat(102_400));
    const last = await exchange(stand, { body: pieces });
    expect(last).toMatchObject(refused);
    expect(last.text).toMatch(/server, which takes at most 6291456 bytes/);
    expect(stand.lines).toMatchObject([{ status: 413 }, { status: 413 }]);
    // An announced one is rejected without waiting.
    const { answer } = await slowSender(stand, {
      length: 6 * megabyte + 1,
      head: `${keyHead}\r\nconnection: close`,
    });
    expect(await answer).toMatch(/^HTTP\/1.1 413 /);
  });

  test('above the limit gets 413 even if the connection closes before the client reads anything', async () => {
    const stand = await serving(() => Promise.reject(new Error('was asked')));
    const socket = connect(stand.port);
    onTestFinished(() => void socket.destroy());
    const length = 20 * megabyte;
    const head = `POST / HTTP/1.1\r\nhost: a\r\n${keyHead}\r\nconnection: close\r\ncontent-length: ${length}\r\n\r\n`;
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject);
      socket.write(head + 'x'.repeat(length), () => resolve());
    });
    expect(await text(socket)).toMatch(/^HTTP\/1.1 413 /);
  });

  test('among a hundred large ones at once is served or told to retry, and other requests of the process continue', async () => {
    const bounds = { requestBytesMax: 2 * megabyte, bodyBytesMax: 8 * megabyte };
    const stand = await serving(async (asked) => {
      await asked.json();
      return { body: 'read' };
    }, bounds);
    const json = Buffer.from(`"${'x'.repeat(2 * megabyte - 2)}"`);
    const packed = { body: gzipSync(json), headers: { 'content-encoding': 'gzip' } };
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, at) => exchange(stand, at % 2 === 0 ? { body: json } : packed)),
    );
    const outcomes = new Set(answers.map(({ status, code }) => `${status} ${code}`));
    expect(outcomes).toContain('200 ');
    expect([...outcomes].filter((one) => one !== '200 ' && one !== '503 unavailable')).toEqual([]);
    expect(await exchange(stand, { body: json })).toMatchObject({ text: 'read' });
  });

  test('that arrives byte by byte is complete', async () => {
    const stand = await serving((asked) => Promise.resolve({ body: Buffer.from(bytesOf(asked)).toString() }));
    expect(await exchange(stand, { body: 'piece by piece, ü' })).toMatchObject({ text: 'piece by piece, ü' });
    expect(await exchange(stand, { body: Array.from('piece by piece') })).toMatchObject({
      text: 'piece by piece',
    });
  });

  test('shares its budget with decompressed data, which is released at the end of the request', async () => {
    const stand = await serving(
      ({ room }) => Promise.resolve({ body: String([room?.take(900_000), room?.take(900_000)]) }),
      { bodyBytesMax: megabyte },
    );
    for (let i = 0; i < 2; i += 1) expect((await exchange(stand)).text).toBe('true,false');
  });

  test('of a stranger is not read: a stranger gets 403 even if the budget is full', async () => {
    const { go, handle, until } = holding();
    const stand = await serving(handle, { bodyBytesMax: megabyte });
    const body = Buffer.alloc(700_000, 'x');
    const held = exchange(stand, { body });
    await until(1);
    const stranger = { body, headers: { 'x-relay-origin': 'guessed' } };
    expect(await exchange(stand, stranger)).toMatchObject({ status: 403, code: 'origin_denied' });
    go();
    await held;
  });
});

const keyHead = `x-relay-origin: ${secret}\r\nauthorization: Bearer sk-x`;

/** A client that announces a body and sends only its start. */
async function slowSender(
  { port }: Stand,
  { begun = 'x', head = '', length = 4_000_000 } = {},
): Promise<{ answer: Promise<string> }> {
  const socket = connect(port);
  onTestFinished(() => void socket.destroy());
  const headers = head || keyHead;
  await once(socket, 'connect');
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\n${headers}\r\ncontent-length: ${length}\r\n\r\n${begun}`,
  );
  const answer = text(socket).catch((error: Error) => error.message);
  return { answer };
}

const slowSenders = (stand: Stand, count: number): ReturnType<typeof slowSender>[] =>
  Array.from({ length: count }, () => slowSender(stand));

describe('clients that send slowly', () => {
  test('300 at once block nobody on a server for 256 requests', async () => {
    const stand = await serving((asked) => Promise.resolve({ body: String(bytesOf(asked).length) }), {
      requestsMax: 256,
    });
    await Promise.all(slowSenders(stand, 300));
    await expect.poll(() => stand.server.arriving, { timeout: 20_000 }).toBe(300);
    const answers = await Promise.all(Array.from({ length: 30 }, () => exchange(stand, { body: '12345' })));
    expect(answers).toEqual(answers.map(() => ({ status: 200, text: '5', code: '' })));
  });

  test('are disconnected, the oldest first, once the maximum is arriving, so that a new one is served', async () => {
    const stand = await serving(() => Promise.resolve({ body: 'served' }), { requestsMax: 2 });
    await Promise.all(slowSenders(stand, 8));
    await expect.poll(() => stand.server.arriving).toBe(8);
    expect(await exchange(stand, { body: '{}' })).toMatchObject({ status: 200, text: 'served' });
    expect(stand.server.arriving).toBe(7);
    expect(stand.lines).toMatchObject([{ status: 503, reason: 'server_slow_body' }]);
  });

  test('lose their buffered data to a body that needs the space', async () => {
    const bounds = { bodyBytesMax: megabyte, slowMs: 0 };
    const body = Buffer.alloc(700_000, 'x');
    for (;;) {
      const stand = await serving(
        (asked) => Promise.resolve({ body: String(bytesOf(asked).length) }),
        bounds,
      );
      const slow = await slowSender(stand, { begun: 'x'.repeat(700_000), length: 900_000 });
      for (let others = 0; others < 5; others += 1) await exchange(stand, { body: 'x' });
      expect(await exchange(stand, { body })).toMatchObject({ status: 200, text: '700000' });
      // A body that arrives while another one occupies the space is dropped at its end, and then retried.
      if (stand.server.arriving > 0) continue;
      expect(await slow.answer).toMatch(/^HTTP\/1.1 503 .*retry-after: 1.*connection: close/s);
      return;
    }
  });

  test('are those that send less than 4 MB in their time, however much they have sent', () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const arrivals = new Arrivals({ most: 4, slowMs: 5_000 });
    const large = arrivals.begin(() => undefined);
    vi.advanceTimersByTime(4_000);
    large.recordBytes(5 * megabyte);
    vi.advanceTimersByTime(4_000);
    expect(arrivals.begin(() => undefined).canMakeRoom()).toBe(false);
    large.recordBytes(8 * megabyte);
    vi.advanceTimersByTime(1_000);
    expect(arrivals.begin(() => undefined).canMakeRoom()).toBe(true);
  });

  test('get 408 and are disconnected after their time limit', async () => {
    const stand = await serving(() => Promise.reject(new Error('was asked')), { arrivalMs: 50 });
    const { answer } = await slowSender(stand);
    expect(await answer).toMatch(/^HTTP\/1.1 408 /);
    await expect.poll(() => stand.server.count).toBe(0);
    expect(stand.faults).toEqual([]);
  });

  test('without a key are answered without waiting for their body', async () => {
    const stand = await serving((asked) => Promise.resolve({ body: String(bytesOf(asked).length) }));
    const { answer } = await slowSender(stand, { head: `x-relay-origin: ${secret}\r\nconnection: close` });
    expect(await answer).toMatch(/^HTTP\/1.1 200 .*\r\n\r\n0$/s);
    expect(stand.server.arriving).toBe(0);
  });

  test('do not delay the shutdown, because an arriving request has not started', async () => {
    const stand = await serving(() => Promise.reject(new Error('was asked')));
    const slow = await slowSender(stand);
    await expect.poll(() => stand.server.arriving).toBe(1);
    expect(await stand.server.end(20_000)).toBe(0);
    expect(await slow.answer).toMatch(/^HTTP\/1.1 503 .*This server is shutting down/s);
  });
});

test.each(['authorization: Bearer sk-x', 'x-api-key: sk-x'])(
  'a body is read with a key in %s',
  async (key) => {
    const stand = await serving((asked) => Promise.resolve({ body: String(bytesOf(asked).length) }));
    const socket = connect(stand.port);
    onTestFinished(() => void socket.destroy());
    socket.write(
      `POST /v1/messages HTTP/1.1\r\nhost: a\r\nx-relay-origin: ${secret}\r\n${key}\r\nconnection: close\r\ncontent-length: 3\r\n\r\nabc`,
    );
    expect(await text(socket)).toMatch(/\r\n\r\n3$/);
  },
);

describe('bytes that are not a request', () => {
  const streaming = async () => {
    const go = Promise.withResolvers<void>();
    const stand = await serving(() => Promise.resolve({ body: words(1, go.promise) }));
    onTestFinished(() => go.resolve());
    return stand;
  };

  test('in the middle of an answer close its connection, and are not answered inside it', async () => {
    const stand = await streaming();
    const socket = connect(stand.port);
    socket.write(
      `POST /v1/responses HTTP/1.1\r\nhost: a\r\nx-relay-origin: ${secret}\r\ncontent-length: 2\r\n\r\n{}`,
    );
    let all = '';
    socket.on('data', (bytes: Buffer) => {
      all += bytes.toString();
    });
    await expect.poll(() => all).toContain('word 0;');
    socket.on('error', () => undefined);
    socket.write('no request at all\r\n\r\n');
    await once(socket, 'close');
    expect(all.match(/HTTP\/1.1/g)).toHaveLength(1);
  });

  test.each([
    ['that are not HTTP get 400', 'no request at all\r\n\r\n', 400],
    ['as headers of 20 KB get 431', `GET / HTTP/1.1\r\nhost: a\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
  ])('%s', async (_what, bytes, status) => {
    const stand = await streaming();
    const socket = connect(stand.port);
    socket.on('error', () => undefined);
    socket.write(bytes);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(answer.toString()).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  });
});

test('requests beyond the limit get 503, but probes are answered', async () => {
  const { go, handle, until } = holding();
  const stand = await serving(handle, { requestsMax: 2 });
  const held = [exchange(stand), exchange(stand)];
  await until(2);
  expect(await exchange(stand)).toMatchObject({ status: 503, code: 'unavailable' });
  expect(stand.lines).toMatchObject([{ reason: 'server_requests_at_once' }]);
  expect(await exchange(stand, { method: 'GET', path: healthPath })).toMatchObject({
    text: '{"status":"ok"}',
  });
  go();
  expect(await Promise.all(held)).toMatchObject([{ status: 200 }, { status: 200 }]);
});

test('a request to upgrade the connection is answered by the relay like any other', async () => {
  const stand = await serving(({ headers }) =>
    Promise.resolve({ status: 426, body: headers['upgrade'] ?? '' }),
  );
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  const headers = { connection: 'Upgrade', upgrade: 'websocket' };
  const upgrade = { method: 'GET', path: '/v1/responses', headers, agent };
  expect(await exchange(stand, upgrade)).toMatchObject({ status: 426, text: 'websocket' });
  expect(await exchange(stand, { agent })).toMatchObject({ status: 426, text: '' });
});

async function* words(count: number, stop?: Promise<void>) {
  for (let at = 0; at < count; at += 1) yield `word ${at};`;
  await stop;
}

describe('an answer', () => {
  test('reaches a client that closed its side after the request', async () => {
    const closedSide = Promise.withResolvers<void>();
    const stand = await serving(() => Promise.resolve({ body: words(3, closedSide.promise) }));
    const socket = connect({ port: stand.port, allowHalfOpen: true });
    socket.end(
      `POST /v1/responses HTTP/1.1\r\nhost: a\r\nx-relay-origin: ${secret}\r\ncontent-length: 2\r\n\r\n{}`,
    );
    await once(socket, 'data');
    closedSide.resolve();
    socket.on('data', (bytes: Buffer) => bytes.includes('\r\n0\r\n\r\n') && socket.destroy());
    const [isBroken] = (await once(socket, 'close')) as [boolean];
    expect(isBroken).toBe(false);
  });

  test('to a client that has left is cancelled by its reader, not by the relay', async () => {
    const left = Promise.withResolvers<void>();
    const settled = Promise.withResolvers<void>();
    async function* endless() {
      try {
        for (;;) yield await new Promise<string>((resolve) => setImmediate(resolve, 'word '));
      } finally {
        left.resolve();
      }
    }
    const stand = await serving(() => Promise.resolve({ body: endless(), done: settled.promise }));
    const answer = await open(stand);
    answer.destroy();
    await left.promise;
    expect(stand.server.count).toBe(1);
    settled.resolve();
    await expect.poll(() => stand.server.count).toBe(0);
  });

  test('that is cut closes the connection and is never ended normally', async () => {
    async function* cut() {
      yield 'half';
      throw new AnswerCut();
    }
    const stand = await serving(() => Promise.resolve({ body: cut() }));
    const answer = await open(stand);
    await expect(buffer(answer)).rejects.toThrow(/aborted/);
    expect(stand.faults).toEqual([]);
  });

  test('to HEAD has no body, and its connection stays usable', async () => {
    const stand = await serving(() => Promise.resolve({ body: 'whole' }));
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    expect(await exchange(stand, { method: 'HEAD', agent })).toMatchObject({ status: 200, text: '' });
    expect(await exchange(stand, { method: 'GET', agent })).toMatchObject({ status: 200, text: 'whole' });
  });
});

describe('a server that shuts down', () => {
  test('accepts no new connection and lets answers finish', async () => {
    const go = Promise.withResolvers<void>();
    const stand = await serving(() => Promise.resolve({ body: words(2, go.promise) }));
    const answer = await open(stand);
    const ended = stand.server.end(20_000);
    await expect(open(stand)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    go.resolve();
    expect(await text(answer)).toBe('word 0;word 1;');
    expect(await ended).toBe(0);
  });

  test('rejects further requests on a connection, and closes it', async () => {
    const go = Promise.withResolvers<void>();
    const stand = await serving(() => Promise.resolve({ body: words(1, go.promise) }));
    const socket = connect(stand.port);
    const raw = `POST /v1/responses HTTP/1.1\r\nhost: a\r\nx-relay-origin: ${secret}\r\ncontent-length: 2\r\n\r\n{}`;
    socket.write(raw);
    const all = text(socket);
    await expect.poll(() => stand.server.count).toBe(1);
    const ended = stand.server.end(20_000);
    socket.write(raw);
    await expect.poll(() => stand.lines.length).toBe(1);
    go.resolve();
    const [, first, second] = (await all).split('HTTP/1.1 ');
    expect(first).toMatch(/^200 .*word 0;.*\r\n0\r\n\r\n$/s);
    expect(second).toMatch(/^503 .*retry-after: 1.*connection: close.*This server is shutting down/s);
    expect(await ended).toBe(0);
  });

  test('ends calls beyond its time limit, and waits until they are billed', async () => {
    const bill = Promise.withResolvers<void>();
    const stand = await serving(async ({ hostEnds }) => {
      const ends = new Promise<void>((resolve) => hostEnds?.addEventListener('abort', () => resolve()));
      return { body: words(1, ends), done: bill.promise };
    });
    const answer = await open(stand);
    let unsettled: number | undefined;
    const ended = stand.server.end(0).then((count) => {
      unsettled = count;
    });
    expect(await text(answer)).toBe('word 0;');
    expect(unsettled).toBeUndefined();
    bill.resolve();
    await ended;
    expect(unsettled).toBe(0);
  });
});
