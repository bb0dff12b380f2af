import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { Worker } from 'node:worker_threads';
import { describe, expect, onTestFinished, test } from 'vitest';
import { CallThread, laneOf } from '../../infra/server/call-thread.ts';
import { createByteBudget } from '../../infra/server/request-body.ts';
import { WebServer } from '../../infra/server/web-server.ts';
import { createHttpEntry } from '../../shared/adapters/entry/http-entry.ts';
import { systemClock as clock, timeSortedIds } from '../../shared/adapters/system/node-ports.ts';
import type { HostedHandle } from '../../shared/relay/http/http.ts';
import { at, gateOf, secret, type GatedStart } from './gated-thread.ts';

const megabyte = 1024 * 1024;
const faults: unknown[] = [];
/** Of the main thread. */
const hosted: HostedHandle = {
  handle: ({ id }) =>
    Promise.resolve({ status: 200, headers: { 'x-request-id': id }, body: 'main', done: Promise.resolve() }),
  clock,
  ids: timeSortedIds(clock),
  log: { request: () => undefined, event: () => undefined, fault: (_, error) => faults.push(error) },
  originSecrets: [secret],
  local: true,
};

async function serving() {
  const gate = gateOf();
  const room = createByteBudget(megabyte);
  const workerData: GatedStart = { lane: 'heavy', room, requestBytesMax: megabyte, gate };
  const worker = new Worker(new URL('gated-thread.ts', import.meta.url), { workerData });
  const thread = new CallThread(worker);
  const server = new WebServer({
    route: () => ({ name: 'responses', hosted, enter: createHttpEntry(hosted) }),
    options: { requestBytesMax: megabyte, requestsMax: 100 },
    room,
    threads: { busy: thread, heavy: thread },
    publicHost: undefined,
  });
  const { port } = await server.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(async () => {
    await server.end(0);
    await worker.terminate();
  });
  const open = async (path: string, bytes = 10): Promise<IncomingMessage> => {
    const headers = { 'x-relay-origin': secret, authorization: 'Bearer sk-x' };
    const sent = request({ port, method: 'POST', path, headers });
    sent.end('x'.repeat(bytes));
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    answer.on('error', () => undefined);
    return answer;
  };
  const said = async (path: string, bytes?: number): Promise<string> => text(await open(path, bytes));
  return { server, gate, room, worker, open, said };
}

/** Resolves once a count of the thread exceeds this. */
async function above(gate: Int32Array, place: number, small: number): Promise<void> {
  await Atomics.waitAsync(gate, place, small).value;
}

describe('a call that may block the event loop', () => {
  test('is answered by a thread, so the main thread answers others while that thread is blocked', async () => {
    const { gate, said } = await serving();
    const held = said('/v1/responses/blocked', 100_000);
    await above(gate, at.blocked, 0);
    expect(await said('/v1/chat/completions')).toBe('main');
    Atomics.store(gate, at.open, 1);
    Atomics.notify(gate, at.open);
    expect(await held).toBe('thread 100000');
    expect(await said('/v1/chat/completions', 100_000)).toBe('thread 100000');
  });

  test('is streamed at the client’s speed, and its source is closed when the client leaves', async () => {
    const { gate, open, said, server } = await serving();
    expect(await said('/v1/responses/stream')).toBe('one two three');
    await above(gate, at.returned, 0);
    const endless = await open('/v1/responses/endless');
    await once(endless, 'data');
    endless.destroy();
    await above(gate, at.returned, 1);
    await expect.poll(() => server.count, { timeout: 10_000 }).toBe(0);
  });

  test('that is cut in its thread closes its connection', async () => {
    const { said } = await serving();
    await expect(said('/v1/responses/cut')).rejects.toThrow('aborted');
  });

  test('ends as at its deadline when the server shuts down', async () => {
    const { server, said } = await serving();
    const waits = said('/v1/responses/waits');
    await expect.poll(() => server.count, { timeout: 10_000 }).toBe(1);
    // The call has started: a thread answers in order of arrival.
    await said('/v1/responses/any');
    expect(await server.end(0)).toBe(0);
    expect(await waits).toBe('ended');
  });

  test('takes its memory from the budget of all threads, and returns it', async () => {
    const { gate, room, said } = await serving();
    expect(await said('/v1/responses/room')).toBe('true');
    // The thread returns its memory after the answer.
    await expect.poll(() => Number(room[0]), { timeout: 10_000 }).toBe(megabyte);
    const waits = said('/v1/responses/waits', 700_000);
    await above(gate, at.blocked, 0);
    expect(await said('/v1/responses/room')).toBe('false');
    void waits.catch(() => undefined);
  });

  test('closes its connection if its thread dies, and so does each later call', async () => {
    const { server, said } = await serving();
    const waits = said('/v1/responses/waits').catch(() => 'broken');
    await expect.poll(() => server.count, { timeout: 10_000 }).toBe(1);
    await expect(said('/v1/responses/dies')).rejects.toThrow('hang up');
    expect(await waits).toBe('broken');
    await expect(said('/v1/responses/any')).rejects.toThrow('hang up');
    await expect.poll(() => server.count, { timeout: 10_000 }).toBe(0);
    expect(faults).toHaveLength(3);
  });

  test('ends all calls after an error outside of any call', async () => {
    const { server, worker, said } = await serving();
    const told = once(worker, 'message');
    const faulty = said('/v1/responses/faulty');
    expect(await told).toEqual(['fault']);
    expect(await server.end(0)).toBe(0);
    expect(await faulty).toBe('ended');
  });
});

test('a request goes to the thread for its possible size', () => {
  const lane = (path: string, body: string, headers = {}) =>
    laneOf({ path, headers, body: Buffer.from(body) });
  const chat = '/v1/chat/completions';
  const responses = '/v1/responses';
  expect([
    lane(chat, '{"messages":[]}'),
    lane(chat, 'x'.repeat(30_000)),
    lane(responses, '{"input":"\\n \\u4e2d \\u003c"}'),
    lane('/health', ''),
  ]).toEqual([undefined, undefined, undefined, undefined]);
  expect([lane(chat, 'x'.repeat(40_000)), lane(chat, 'x'.repeat(megabyte))]).toEqual(['busy', 'busy']);
  expect([
    lane(chat, 'x'.repeat(megabyte + 1)),
    lane(chat, 'x', { 'content-encoding': 'GZIP' }),
    lane('/v1/embeddings', '{"input":["a"]}'),
    lane(`${responses}/resp-1/input_items`, ''),
    lane(responses, '{"previous_response_id":"resp-1"}'),
    lane(responses, '{"\\u0070revious_response_id":"resp-1"}'),
    lane(responses, '{"input":[{"id":"msg_01k0000000000000000000000z_in0"}]}'),
    lane(responses, '{"input":[{"type":"reasoning","encrypted_content":"x"}]}'),
  ]).toEqual(Array(8).fill('heavy'));
});
