import { describe, expect, it } from 'vitest';
import { AnswerCut, type RelayResponse } from '../../../../shared/relay/http/http.ts';
import { ResponseQueue } from '../../../../shared/relay/answer/delivery.ts';
import { BillingRig, small, yuan } from '../../../support/billing-rig.ts';
import { CoreRig, delta, done, finish, usage, type Step } from '../../../support/core-rig.ts';

const ask = { model: 'm', messages: [{ role: 'user', content: 'Hi' }] };
const stream = { ...ask, stream: true };
const megabyte = 1024 * 1024;
const big = delta('x'.repeat(megabyte));

const reads = (response: RelayResponse): AsyncIterator<string> => {
  if (typeof response.body === 'string') throw new Error(response.body);
  return response.body[Symbol.asyncIterator]();
};

const cutOf = async (response: RelayResponse): Promise<AnswerCut | undefined> => response.cut;

describe('a client that reads nothing for 30 s', () => {
  const cases: [string, object, Step[], string][] = [
    ['in a stream', stream, [delta('a'), big, big, big, finish(), usage(7, 786_433), done], 'client_gone'],
    ['at the end of a stream', stream, [big, finish(), usage(7, 786_433), done], 'completed'],
    ['in a JSON answer', ask, [big, finish(), usage(7, 786_433), done], 'completed'],
  ];
  it.each(cases)('%s never gets an end, and the host is told at once', async (_case, body, steps, end) => {
    const rig = new CoreRig().upstream({ steps });
    const response = await rig.clock.run(rig.respond(body));
    const texts = reads(response);
    expect((await texts.next()).done).toBe(false);
    const startedMs = rig.clock.now();
    expect(await rig.clock.run(cutOf(response))).toBeInstanceOf(AnswerCut);
    expect(rig.clock.now() - startedMs).toBe(30_000);
    await expect(texts.next()).rejects.toBeInstanceOf(AnswerCut);
    await expect(texts.next()).rejects.toBeInstanceOf(AnswerCut);
    await rig.clock.run(response.done);
    expect(rig.logged[0]).toMatchObject({ end, status: 200, prompt_tokens: 7 });
    expect(rig.stepsTaken).toBe(steps.length);
  });
});

describe('a long answer', () => {
  const long = delta('x'.repeat(300 * 1024));
  const rigOf = () =>
    new BillingRig().granted(100n * yuan).upstream({ steps: [long, finish(), usage(7, 40), done] });

  it('counts as concurrent for its account until its client has read it', async () => {
    const rig = rigOf();
    const response = await rig.clock.run(rig.respond({ ...small, stream: true }));
    const texts = reads(response);
    await texts.next();
    await rig.clock.run(rig.clock.sleep(20_000));
    expect(rig.open).toHaveLength(1);
    while (!(await texts.next()).done);
    await rig.clock.run(response.done);
    expect(rig.open).toEqual([]);
  });

  it('that the host cannot deliver keeps its reservation and its host for 30 s', async () => {
    const rig = rigOf();
    const response = await rig.clock.run(rig.respond({ ...small, stream: true }));
    response.closes?.(new Promise(() => undefined));
    const texts = reads(response);
    while (!(await texts.next()).done);
    const startedMs = rig.clock.now();
    expect(rig.open).toHaveLength(1);
    expect(await rig.clock.run(cutOf(response))).toBeInstanceOf(AnswerCut);
    expect(rig.clock.now() - startedMs).toBe(30_000);
    await rig.clock.run(response.done);
    expect(rig.open).toEqual([]);
  });
});

describe('a slow client', () => {
  it.each([
    ['a stream', stream],
    ['a JSON answer', ask],
  ])('that reads something every 20 s gets all of %s', async (_mode, body) => {
    const word = '0123456789abcdef'.repeat(1024);
    const steps = [...Array.from({ length: 80 }, () => delta(word)), finish(), usage(7, 1), done];
    const settings = {
      limits: { defaultOutputTokens: 1, requestSeconds: 3_600, stateDays: 30, countFree: true },
    };
    const rig = new CoreRig({ settings, channels: [{ idle_seconds: 900, total_seconds: 900 }] });
    rig.upstream({ steps });
    const response = await rig.clock.run(rig.respond(body, { hostDeadlineMs: rig.clock.now() + 3_600_000 }));
    let text = '';
    const texts = reads(response);
    for (;;) {
      const { done: over, value } = await rig.clock.run(texts.next());
      if (over) break;
      text += value;
      await rig.clock.run(rig.clock.sleep(20_000));
    }
    await rig.clock.run(response.done);
    expect(text.split(word)).toHaveLength(81);
    expect(text).toContain('"finish_reason":"stop"');
    expect(rig.logged[0]).toMatchObject({ end: 'completed' });
  });
});

describe('the response queue', () => {
  const piece = 16 * 1024;

  it('splits a long text without splitting a character', async () => {
    const queue = new ResponseQueue(megabyte);
    const text = `a${'😀'.repeat(piece)}`;
    queue.push(text);
    queue.end();
    const pieces: string[] = [];
    for await (const part of queue) pieces.push(part);
    expect(pieces.join('')).toBe(text);
    expect(pieces.every((part) => part.length <= piece && part.isWellFormed())).toBe(true);
  });
});
