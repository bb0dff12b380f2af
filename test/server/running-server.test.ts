import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PutCommand } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { forgetPeak, peakMegabytes } from '../hardening/process-memory.ts';
import { startWatchedStack, type WatchedStack } from '../hardening/watched-stack.ts';
import { keyOf, MoneyReader, rowsOfAccount, until, type TableRow } from '../local/money-reader.ts';
import { untilPublished } from '../support/published.ts';
import { startScriptedUpstream, type ScriptedUpstream } from '../support/scripted-upstream.ts';
import { chunk, usageChunk } from '../support/upstream-frames.ts';

/** `RELAY_COMPUTE=server npm start`: distribution, one server process for all calls, the functions behind the tables. */
const wave = 8;
const bodies = 30;
/** The peak is 590 MB: a second copy of each body would be 120 MB more. */
const megabytesMax = 680;

let upstream: ScriptedUpstream;
let sink: Server;
let sunk: { count: number; all: PromiseWithResolvers<void> };
let stack: WatchedStack;

const names = ['leaving', 'killed'];
const channel = (id: string, models: string[], endpoint: string): TableRow => [
  'channels',
  { id, endpoint, models, state: true, idle_seconds: 900, first_content_seconds: 900 },
];

beforeAll(async () => {
  upstream = await startScriptedUpstream();
  sunk = { count: 0, all: Promise.withResolvers() };
  // Discards its input, and ends its answers when all clients have sent everything.
  sink = createServer((request, response) => {
    request.resume().once('end', () => {
      sunk.count += 1;
      if (sunk.count === bodies) sunk.all.resolve();
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`data: ${JSON.stringify(chunk({ role: 'assistant', content: 'ok' }))}\n\n`);
      void sunk.all.promise.then(() => response.end(framesOf(chunk({}, 'stop'), usageChunk())));
    });
  });
  await once(sink.listen(0, '127.0.0.1'), 'listening');
  const { port } = sink.address() as AddressInfo;
  stack = await startWatchedStack({
    environmentsMax: 2,
    functionEnvironment: {
      RELAY_COMPUTE: 'server',
      RELAY_DRAIN_SECONDS: '1',
      RELAY_BODY_MEGABYTES: '512',
      RELAY_SWEEP_GRACE: '0',
    },
    rows: [
      channel('scripted', ['metered'], upstream.endpoint),
      channel('sink', ['sink'], `http://127.0.0.1:${port}/v1`),
      ['charges', { id: 10, type: 'token-billing', models: ['metered'], input: 1, output: 2 }],
      ...names.flatMap((name) => rowsOfAccount(name, 1000)),
    ],
  });
  await until(async () => {
    const there = await new MoneyReader(stack).accounts();
    return names.every((name) => there.has(name));
  });
}, 120_000);
afterAll(async () => {
  await stack?.stop();
  await upstream?.close();
  sink?.close();
  sink?.closeAllConnections();
});

const serverPid = (): number => stack.processes('server').at(-1) ?? 0;

const send = (key: string, body: object | Buffer<ArrayBuffer>): Promise<Response> =>
  stack.postUntilTaken(body, { headers: { authorization: `Bearer ${key}` } });
const post = (account: string, body: object): Promise<Response> =>
  send(keyOf(account), { model: 'metered', stream: true, ...body });

/** In one write, because the relay waits only briefly for counts after the end of the text. */
const framesOf = (...frames: object[]): string =>
  [...frames.map((frame) => JSON.stringify(frame)), '[DONE]'].map((each) => `data: ${each}\n\n`).join('');

/** All run at once, but start in groups, because they share one emulated store and this process with the tests. */
async function inWaves<Begun>(count: number, begin: (at: number) => Promise<Begun>): Promise<Begun[]> {
  const begun: Begun[] = [];
  for (let from = 0; from < count; from += wave) {
    const size = Math.min(wave, count - from);
    begun.push(...(await Promise.all(Array.from({ length: size }, (_, at) => begin(from + at)))));
  }
  return begun;
}

const saying = (content: string) => ({ messages: [{ role: 'user', content }] });
const saidIn = (body: Record<string, unknown>): string =>
  (body['messages'] as { content: string }[]).at(-1)?.content ?? '';

/** The text of an answer, of its error too. */
function contentOf(text: string): string {
  const parts = [...text.matchAll(/^data: (\{.*\})$/gm)].map(
    ([, json]) =>
      JSON.parse(String(json)) as { choices?: { delta: { content?: string } }[]; error?: { code: string } },
  );
  return parts.map(({ choices, error }) => error?.code ?? choices?.[0]?.delta.content ?? '').join('');
}

describe('one server process', { timeout: 300_000 }, () => {
  test(`holds ${bodies} bodies of 4 MB at once within ${megabytesMax} MB, and serves all`, async () => {
    const pid = serverPid();
    forgetPeak(pid);
    const form = '{"model":"sink","stream":true,"messages":[{"role":"user","content":"*"}]}';
    const body = Buffer.from(form.replace('*', 'x'.repeat(4 * 1024 * 1024 - form.length)));
    const begun = await inWaves(bodies, async () => {
      const response = await send(stack.key, body);
      return { status: response.status, text: response.text() };
    });
    for (const { status, text } of begun) expect([status, contentOf(await text)]).toEqual([200, 'ok']);
    const peak = peakMegabytes(pid);
    console.log(`peak of the server: ${Math.round(peak)} MB`);
    expect(peak).toBeLessThan(megabytesMax);
    expect(stack.processes('server')).toHaveLength(1);
    expect(stack.processes('chat')).toHaveLength(0);
  });

  test('lets answers finish at shutdown, ends the others with an error, and loses no settlement', async () => {
    const pid = serverPid();
    const go = Promise.withResolvers<void>();
    let arrived = 0;
    upstream.script(async ({ body }, reply) => {
      await reply.data(chunk({ role: 'assistant', content: 'first ' }));
      arrived += 1;
      if (saidIn(body) === 'hang') return reply.hang();
      await go.promise;
      reply.end(framesOf(chunk({ content: 'last' }), chunk({}, 'stop'), usageChunk()));
    });
    const kinds = ['hang', 'end'].flatMap((kind) => Array.from({ length: 10 }, () => kind));
    const texts = kinds.map(async (kind) => {
      const response = await post('leaving', saying(kind));
      return contentOf(await response.text());
    });
    await until(async () => arrived === kinds.length);
    process.kill(pid, 'SIGTERM');
    await until(async () => stack.lines.some((line) => line.includes('server_ending')));
    go.resolve();
    const said = await Promise.all(texts);
    expect(said.slice(10)).toEqual(Array.from({ length: 10 }, () => 'first last'));
    expect(said.slice(0, 10)).toEqual(Array.from({ length: 10 }, () => 'first upstream_timeout'));
    await until(async () => stack.lines.some((line) => line.includes(`pid ${pid} ended (0)`)));
    expect(stack.lines.find((line) => line.includes('server_ended'))).toContain('"unsettled":0');
    const reader = new MoneyReader(stack);
    const rows = await reader.ledger('leaving', kinds.length);
    expect(rows.map((row) => row['kind'])).toEqual(kinds.map(() => 'settled'));
    await reader.settled('leaving');

    upstream.script((_call, reply) =>
      reply.end(framesOf(chunk({ role: 'assistant', content: 'again' }), chunk({}, 'stop'), usageChunk())),
    );
    await until(async () => serverPid() !== pid);
    const next = await post('leaving', saying('hi'));
    expect(contentOf(await next.text())).toBe('again');
  });

  test('that is killed in mid-flight leaves its calls to the sweeper, which settles each once', async () => {
    const calls = 4;
    let arrived = 0;
    const Item = { name: 'limits', value: { request_seconds: 6 } };
    await stack.store.documents.send(new PutCommand({ TableName: 'relay-settings', Item }));
    await untilPublished(stack.store.endpoint, ({ settings }) => settings.limits.requestSeconds === 6);
    // A new process starts with the new limit.
    const before = serverPid();
    process.kill(before, 'SIGTERM');
    await until(async () => serverPid() !== before);
    upstream.script(async (_call, reply) => {
      await reply.data(chunk({ role: 'assistant', content: 'half an' }));
      arrived += 1;
      await reply.hang();
    });
    const answers = await Promise.all(Array.from({ length: calls }, () => post('killed', saying('hi'))));
    await until(async () => arrived === calls);
    process.kill(serverPid(), 'SIGKILL');
    await Promise.all(answers.map((answer) => expect(answer.text()).rejects.toThrow(/terminated/)));
    const reader = new MoneyReader(stack);
    await until(async () => {
      await stack.runSchedules();
      return (await reader.account('killed')).open === 0;
    }, 2_000);
    const rows = await reader.ledger('killed', calls);
    expect(rows.map((row) => row['kind'])).toEqual(Array.from({ length: calls }, () => 'expired'));
    const { available, spent } = await reader.account('killed');
    expect(available + spent).toBe(1000e9);
    expect(spent).toBe(rows.reduce((sum, row) => sum + Math.round(Number(row['charge']) * 1e9), 0));
  });
});
