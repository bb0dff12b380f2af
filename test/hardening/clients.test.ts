import { once } from 'node:events';
import { request as send, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Script, ScriptedUpstream } from '../support/scripted-upstream.ts';
import { chunk, usageChunk } from '../support/upstream-frames.ts';
import { textStream } from '../support/upstream-scripts.ts';
import { framesOf, streamedText } from './answers.ts';
import { hardeningStack } from './hardening-stack.ts';
import { forgetPeak, peakMegabytes } from './process-memory.ts';
import type { WatchedStack } from './watched-stack.ts';

let upstream: ScriptedUpstream;
let stack: WatchedStack;
let firstProcess: number[];

beforeAll(async () => {
  ({ upstream, stack } = await hardeningStack());
  // Another file of the folder may have filled the memory of the running process.
  await stack.killProcesses('chat');
  await stack.post(call);
  firstProcess = stack.chatProcesses();
});

const call = { model: 'plain', stream: true, messages: [{ role: 'user', content: 'Hello' }] };

/** A client that reads only when asked to. */
async function open(): Promise<{ response: IncomingMessage; id: string }> {
  const request = send(`${stack.origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${stack.key}`, 'content-type': 'application/json' },
  }).end(JSON.stringify(call));
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  response.on('error', () => {});
  return { response, id: String(response.headers['x-request-id']) };
}

describe('a client that leaves after three chunks', () => {
  test.each(['hangs up', 'resets'] as const)(
    'and %s does not cut its upstream: the whole answer is charged',
    async (way) => {
      const left = Promise.withResolvers<void>();
      upstream.forget();
      upstream.script(async (_call, reply) => {
        for (const content of ['one', ' two', ' three']) await reply.data(chunk({ content }));
        await left.promise;
        // More than the sockets in between can buffer, so that somebody must read it.
        const padded = chunk({ content: ' more' }, null, { obfuscation: 'x'.repeat(100_000) });
        for (let piece = 0; piece < 300; piece += 1) await reply.data(padded);
        await reply.data(
          chunk({}, 'stop'),
          usageChunk({ prompt_tokens: 7, completion_tokens: 303, total_tokens: 310 }),
          '[DONE]',
        );
        reply.end();
      });
      const { response, id } = await open();
      let text = '';
      for await (const piece of response.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
        text += String(piece);
        if (text.includes('three')) break;
      }
      if (way === 'resets') response.socket.resetAndDestroy();
      else response.destroy();
      left.resolve();

      expect(await upstream.requests[0]?.closed).toBe('finished');
      expect(await stack.logged(id)).toMatchObject({
        status: 200,
        prompt_tokens: 7,
        completion_tokens: 303,
        usage_estimated: false,
      });
      upstream.script(textStream('Next, please.'));
      expect(await (await stack.post(call)).text()).toContain('[DONE]');
      expect(stack.chatProcesses()).toEqual(firstProcess);
    },
  );
});

describe('a long answer', () => {
  const words = 'twenty characters.. ';
  const count = 130_000;
  let written = 0;
  /** About 31 MB for the client, in chunks of a common size, a thousand in each write. */
  const long: Script = async (_call, reply) => {
    const thousand = `data: ${JSON.stringify(chunk({ content: words }))}\n\n`.repeat(1000);
    for (written = 0; written < count; written += 1000) await reply.write(thousand);
    await reply.data(chunk({}, 'stop'), usageChunk(), '[DONE]');
    reply.end();
  };

  test('waits in little memory for a client that does not read, and reaches it completely when it does', async () => {
    upstream.script(long);
    const pid = firstProcess.at(-1) ?? 0;
    forgetPeak(pid);
    const { response } = await open();
    expect(await standstill(() => written)).toBeLessThan(count);
    let text = '';
    for await (const part of response.setEncoding('utf8')) text += String(part);

    const frames = framesOf(text);
    expect(text.length).toBeGreaterThan(20_000_000);
    expect(streamedText(frames)).toBe(words.repeat(count));
    expect(frames.at(-1)).toMatchObject({ choices: [{ finish_reason: 'stop' }] });
    expect(stack.chatProcesses()).toEqual(firstProcess);
    expect(peakMegabytes(pid)).toBeLessThan(200);
  });
});

/** The value at which a counter stops, because its writer waits. */
async function standstill(read: () => number): Promise<number> {
  for (let before = -1; ; await sleep(200)) {
    const now = read();
    if (now > 0 && now === before) return now;
    before = now;
  }
}
