import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startScriptedUpstream, type ScriptedUpstream } from '../support/scripted-upstream.ts';
import { chunk, usageChunk } from '../support/upstream-frames.ts';
import { rawPost } from './raw-client.ts';
import { startWatchedStack, type WatchedStack } from './watched-stack.ts';

/**
 * Clients that read nothing, or almost nothing, in the middle of an answer that exceeds all buffers, on both hosts. All of
 * them wait for the same 30 s of real time, in parallel.
 */
let upstream: ScriptedUpstream;
/** Environments of a function with one call each, and one server process with all calls. */
const hosts = { chat: 3, server: 1 };
type Host = keyof typeof hosts;
let stacks: Record<Host, WatchedStack>;
/** 39 MB on the wire. */
const count = 150_000;
const usage = { prompt_tokens: 7, completion_tokens: 4 * count, total_tokens: 4 * count + 7 };

beforeAll(async () => {
  upstream = await startScriptedUpstream();
  upstream.script(async (_call, reply) => {
    const thousand = `data: ${JSON.stringify(chunk({ content: 'word '.repeat(4) }))}\n\n`.repeat(1000);
    for (let written = 0; written < count; written += 1000) await reply.write(thousand);
    await reply.data(chunk({}, 'stop'), usageChunk(usage), '[DONE]');
    reply.end();
  });
  const start = (compute: string): Promise<WatchedStack> =>
    startWatchedStack({
      environmentsMax: 3,
      functionEnvironment: { RELAY_COMPUTE: compute },
      rows: [['channels', { id: 'scripted', endpoint: upstream.endpoint, models: ['plain'], state: true }]],
    });
  const [chat, server] = await Promise.all([start('event'), start('server')]);
  stacks = { chat, server };
});
afterAll(async () => {
  await Promise.all(Object.values(stacks ?? {}).map((stack) => stack.stop()));
  await upstream?.close();
});

const call = {
  model: 'plain',
  max_tokens: 4 * count,
  messages: [{ role: 'user' as const, content: 'Hello' }],
};

interface Reader {
  socket: Socket;
  id: string;
  /** All received bytes. */
  bytes: Buffer[];
}

/** A client on a raw socket that reads the headers and then stops. */
async function stalled(stack: WatchedStack, body: object): Promise<Reader> {
  const { hostname, port } = new URL(stack.origin);
  const socket = connect(Number(port), hostname);
  const bytes: Buffer[] = [];
  socket.on('error', () => undefined);
  socket.write(rawPost(stack.key, { body: JSON.stringify(body) }));
  for (;;) {
    bytes.push(((await once(socket, 'data')) as [Buffer])[0]);
    const id = /x-request-id: (\S+)/i.exec(Buffer.concat(bytes).toString('latin1'))?.[1];
    if (id === undefined) continue;
    socket.pause();
    return { socket, id, bytes };
  }
}

async function readOn({ socket, bytes }: Reader): Promise<string> {
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.on('data', (more) => bytes.push(more)).resume();
  await closed;
  return Buffer.concat(bytes).toString();
}

const sentTo = (stack: WatchedStack, id: string) => stack.lines.filter((line) => line.includes(id));

describe.concurrent.each(Object.keys(hosts) as Host[])(
  'a reader of %s that stalls',
  { timeout: 120_000 },
  (host) => {
    test('in a stream gets no normal end: no finish reason, no [DONE], no last chunk; the call is billed', async () => {
      const stack = stacks[host];
      const reader = await stalled(stack, { ...call, stream: true });
      expect(await stack.logged(reader.id)).toMatchObject({
        end: 'client_gone',
        status: 200,
        prompt_tokens: 7,
        usage_estimated: false,
        completion_tokens: usage.completion_tokens,
      });
      const text = await readOn(reader);
      expect(text).toContain('word');
      expect(text).not.toMatch(/"finish_reason":"|\[DONE\]|"error"|\r\n0\r\n/);
      expect(sentTo(stack, reader.id).join()).toContain('"why":"stuck"');
    });

    test('is disconnected the same way at one byte a second', async () => {
      const stack = stacks[host];
      const { hostname, port } = new URL(stack.origin);
      const seen: string[] = [];
      const reading = { fast: true };
      const closed = Promise.withResolvers<void>();
      const socket = connect({
        host: hostname,
        port: Number(port),
        onread: {
          buffer: Buffer.alloc(1),
          callback(_count, buffer) {
            seen.push(String.fromCharCode((buffer as Buffer)[0] ?? 0));
            if (reading.fast) return true;
            setTimeout(() => socket.resume(), 1000);
            return false;
          },
        },
      });
      socket.on('error', () => undefined).once('close', closed.resolve);
      socket.write(rawPost(stack.key, { body: JSON.stringify({ ...call, stream: true }) }));
      const head = () => /x-request-id: (\S+)\r/i.exec(seen.join(''))?.[1];
      while (head() === undefined) await new Promise((resolve) => setTimeout(resolve, 20));
      const id = head() ?? '';
      reading.fast = false;
      expect(await stack.logged(id)).toMatchObject({ end: 'client_gone', prompt_tokens: 7 });
      expect(seen.join('')).not.toMatch(/"finish_reason":"|\[DONE\]|\r\n0\r\n/);
      socket.destroy();
      await closed.promise;
    });

    test('in a stream of OpenAI’s library gets an error, not a truncated success', async () => {
      const stack = stacks[host];
      const client = new OpenAI({ baseURL: `${stack.origin}/v1`, apiKey: stack.key, maxRetries: 0 });
      const { data: stream, response } = await client.chat.completions
        .create({ ...call, stream: true })
        .withResponse();
      const id = response.headers.get('x-request-id') ?? '';
      const read = async () => {
        for await (const _part of stream) await stack.logged(id);
      };
      await expect(read()).rejects.toThrow(/terminated|aborted|closed|connection/i);
      expect(await stack.logged(id)).toMatchObject({ end: 'client_gone', completion_tokens: 4 * count });
    });
  },
);

test.each(Object.entries(hosts))(
  'the processes of %s survive, and serve the next calls',
  async (host, count) => {
    const stack = stacks[host as Host];
    const before = stack.processes(host);
    const response = await stack.post({ ...call, stream: true });
    expect(await response.text()).toContain('[DONE]');
    expect(before).toHaveLength(count);
    expect(stack.processes(host)).toEqual(before);
  },
);
