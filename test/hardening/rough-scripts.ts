import { setTimeout as sleep } from 'node:timers/promises';
import type { Script } from '../support/scripted-upstream.ts';
import { chunk } from '../support/upstream-frames.ts';

/** Writes until the caller disconnects: an answer that never ends by itself. */
const forever =
  (piece: string | Uint8Array, everyMs = 0): Script =>
  async (_call, reply) => {
    const gone = reply.hang().then(() => 'gone');
    do await reply.write(piece);
    while ((await Promise.race([gone, sleep(everyMs)])) !== 'gone');
  };

const frame = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
const words = frame(chunk({ role: 'assistant', content: 'one two' }));

const after =
  (first: string, then: Script): Script =>
  async (call, reply) => {
    await reply.write(first);
    await then(call, reply);
  };

export const lineWithoutEnd = after('data: ', forever('x'.repeat(256 * 1024)));
export const lineWithoutEndAfterWords = after(`${words}data: `, forever('x'.repeat(256 * 1024)));
export const commentsWithoutEnd = forever(': still here\n\n', 20);
export const blanksWithoutEnd = forever(' '.repeat(64 * 1024));
export const framesWithoutEnd = forever(frame(chunk({ content: 'x'.repeat(250_000) })));
export const wordsWithoutEnd = after(words, forever(words, 20));
export const emptyDeltasWithoutEnd = forever(frame(chunk({ content: '' })), 20);

/** One JSON document that never closes. */
export const documentWithoutEnd = after(
  '{"choices":[{"message":{"content":"',
  forever('x'.repeat(256 * 1024)),
);

/** The headers of an answer, then nothing. */
export const headThenSilence: Script = async (_call, reply) => {
  reply.head(200, { 'content-type': 'text/event-stream' });
  await reply.hang();
};

export const redirect: Script = (_call, reply) => {
  reply.head(302, { location: 'http://127.0.0.1:1/elsewhere' });
  reply.end();
};

export const noContent: Script = (_call, reply) => {
  reply.head(204);
  reply.end();
};

/** An error status whose body never ends. */
export const refusalWithoutEnd =
  (status: number): Script =>
  async (call, reply) => {
    reply.head(status, { 'content-type': 'application/json' });
    await forever('{"error":{"message":"upstream words'.repeat(1000))(call, reply);
  };

export const refusalThenSilence: Script = async (_call, reply) => {
  reply.head(400, { 'content-type': 'application/json' });
  await reply.hang();
};

/** A refusal whose members have wrong types. */
export const strangeRefusal: Script = (_call, reply) =>
  reply.json(400, { error: { message: { a: 1 }, type: 7, param: ['x'], code: 42 } });

/** Small frames that each open another choice or tool call, all of which the relay must track. */
const counted =
  (frameAt: (number: number) => object): Script =>
  async (_call, reply) => {
    const gone = reply.hang().then(() => 'gone');
    let number = 0;
    do {
      let text = '';
      for (let piece = 0; piece < 1000; piece += 1) text += frame(frameAt(number++));
      await reply.write(text);
    } while ((await Promise.race([gone, sleep(0)])) !== 'gone');
  };

export const choicesWithoutEnd = counted((index) => ({ choices: [{ index, delta: { content: 'one' } }] }));
export const toolCallsWithoutEnd = counted((index) =>
  chunk({ tool_calls: [{ index, id: `call_${index}`, function: { name: 'one', arguments: '{}' } }] }),
);
