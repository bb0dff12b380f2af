import { describe, expect, it } from 'vitest';
import { ResponseQueue } from '../../../../shared/relay/answer/delivery.ts';
import { CoreRig, delta, done, finish, usage, type Step } from '../../../support/core-rig.ts';

/** Numbers from 0 to below 1, the same for the same seed. */
function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

/** Content and pauses of all lengths, so that heartbeats fall before, between and after content. */
function steps(random: () => number): Step[] {
  const contents = Array.from({ length: 1 + Math.floor(random() * 6) }, () => [
    Math.floor(random() * 50_000),
    delta('€uro\n\n: ping\n\n'.repeat(Math.floor(random() ** 6 * 20_000))),
  ]);
  return [...contents.flat(), Math.floor(random() * 40_000), finish(), usage(7, 9), done];
}

const seeds = Array.from({ length: 40 }, (_, seed) => seed);

describe('a heartbeat', () => {
  it.each(['chat', 'responses'] as const)(
    'never splits a frame and never follows the last one: %s',
    async (name) => {
      let heartbeats = 0;
      for (const seed of seeds) {
        const rig = new CoreRig({ channels: [{ idle_seconds: 900 }] });
        rig.upstream({ steps: steps(chance(seed)) });
        const path = name === 'chat' ? '/v1/chat/completions' : '/v1/responses';
        const body = { model: 'm', stream: true };
        const input = name === 'chat' ? { messages: [{ role: 'user', content: 'Hi' }] } : { input: 'Hi' };
        const { text } = await rig.post({ ...body, ...input }, { path });
        const frames = text.split('\n\n');
        expect(frames.pop()).toBe('');
        const beats = frames.filter((frame) => frame === ': ping');
        heartbeats += beats.length;
        for (const frame of frames) {
          if (frame === ': ping' || frame === 'data: [DONE]') continue;
          const data = /^(?:event: [a-z_.]+\n)?data: (.*)$/.exec(frame)?.[1];
          expect(JSON.parse(data ?? frame)).toBeTypeOf('object');
        }
        expect(frames.at(-1)).toMatch(name === 'chat' ? /^data: \[DONE\]$/ : /^event: response\.completed\n/);
      }
      expect(heartbeats).toBeGreaterThan(40);
    },
  );

  it('of a JSON answer precedes the document and never splits it', async () => {
    for (const seed of seeds) {
      const rig = new CoreRig({ channels: [{ idle_seconds: 900 }] }).upstream({ steps: steps(chance(seed)) });
      const { text } = await rig.post({ model: 'm', messages: [{ role: 'user', content: 'Hi' }] });
      expect(text.trimStart()).toMatch(/^\{.*\}$/s);
      expect(JSON.parse(text)).toMatchObject({ choices: [{ finish_reason: 'stop' }] });
    }
  });

  it('after the end is dropped', async () => {
    const queue = new ResponseQueue(10);
    queue.push('whole');
    queue.end();
    queue.push(': ping\n\n');
    expect((await queue.next()).value).toBe('whole');
    expect((await queue.next()).done).toBe(true);
  });
});
