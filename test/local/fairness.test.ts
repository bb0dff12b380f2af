import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { startWatchedStack, type WatchedStack } from '../hardening/watched-stack.ts';
import { startScriptedUpstream, type Script, type ScriptedUpstream } from '../support/scripted-upstream.ts';
import { chunk, usageChunk } from '../support/upstream-frames.ts';
import { writesUpTo } from './metered-upstream.ts';
import { keyOf, rowsOfAccount, until } from './money-reader.ts';

/** A greedy tenant next to one that calls occasionally, on the running stack. */
const perMinute = 30;
const accountPerMinute = 10;
const callsAtOnce = 4;

let upstream: ScriptedUpstream;
let stack: WatchedStack;

beforeAll(async () => {
  upstream = await startScriptedUpstream();
  stack = await startWatchedStack({
    environmentsMax: 6,
    rows: [
      ['channels', { id: 'narrow', endpoint: upstream.endpoint, state: true, models: ['narrow'] }],
      ['channels', { id: 'free', endpoint: upstream.endpoint, state: true, models: ['free'] }],
      ['charges', { id: 10, type: 'token-billing', models: ['narrow'], input: 0.1, output: 0.2 }],
      ['charges', { id: 11, type: 'non-billing', models: ['free'] }],
      // Two minutes of a greedy tenant plus all calls of an honest one stay below the upstream's limit per minute.
      [
        'settings',
        { name: 'limits', value: { account_rpm: accountPerMinute, account_concurrency: callsAtOnce } },
      ],
      ...rowsOfAccount('greedy', 1000),
      ...rowsOfAccount('honest', 1000),
      ...rowsOfAccount('other', 1000),
      ...rowsOfAccount('unlimited', 1000),
      ...rowsOfAccount('poor', 0.000001),
      // Refusals of an account at its limit are cached for a second.
      ...rowsOfAccount('poorer', 0.000001),
      ['accounts', { account: 'unlimited', rpm: 1000, concurrency: 1000 }],
    ],
  });
});
afterAll(async () => {
  await stack?.stop();
  await upstream?.close();
});

const post = (account: string, model: string, stream = false): Promise<Response> =>
  stack.post(
    { model, stream, max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] },
    { headers: { authorization: `Bearer ${keyOf(account)}` } },
  );

interface Outcome {
  status: number;
  message: string;
}
async function outcome(answer: Promise<Response>): Promise<Outcome> {
  const response = await answer;
  const text = await response.text();
  const message =
    response.status === 200 ? '' : (JSON.parse(text) as { error: { message: string } }).error.message;
  return { status: response.status, message };
}
const together = (count: number, call: () => Promise<Response>): Promise<Outcome[]> =>
  Promise.all(Array.from({ length: count }, () => outcome(call())));
const served = (outcomes: Outcome[]): number => outcomes.filter(({ status }) => status === 200).length;

/** An upstream that accepts this many calls a minute, and answers others with a 429. */
function limitedTo(most: number): Script {
  const taken: number[] = [];
  return async (call, reply) => {
    const nowMs = Date.now();
    if (taken.filter((atMs) => atMs > nowMs - 60_000).length >= most)
      return reply.json(429, { error: { message: 'slow down', code: 'rate_limit_exceeded' } });
    taken.push(nowMs);
    await writesUpTo(5)(call, reply);
  };
}

describe('beside a tenant that opens as many streams of a free model as it can', () => {
  it('another one is answered while they run, because most of them were rejected', async () => {
    const over = Promise.withResolvers<void>();
    upstream.forget();
    upstream.script(async (call, reply) => {
      await reply.data(chunk({ role: 'assistant', content: 'Word' }));
      if (call.body['model'] === 'free') await over.promise;
      await reply.data(chunk({}, 'stop'), usageChunk(), '[DONE]');
      reply.end();
    });
    const refused: Outcome[] = [];
    const running = Promise.withResolvers<void>();
    const calls = Array.from({ length: 10 }, async () => {
      let one = await outcome(post('poor', 'free', true));
      // An environment that starts among so many may not reach its store in time; SDKs retry that.
      while (one.status === 503) one = await outcome(post('poor', 'free', true));
      if (one.status !== 200 && refused.push(one) === 10 - callsAtOnce) running.resolve();
      return one;
    });
    onTestFinished(() => over.resolve());
    await running.promise;
    await until(async () => upstream.requests.length >= callsAtOnce);
    expect(upstream.requests).toHaveLength(callsAtOnce);
    for (const one of refused)
      expect(one).toEqual({
        status: 429,
        message: expect.stringContaining(`limited to ${callsAtOnce} requests at the same time`),
      });
    const honest = await together(3, () => post('honest', 'narrow', true));
    expect(served(honest)).toBe(3);
    over.resolve();
    expect(served(await Promise.all(calls))).toBe(callsAtOnce);
  });

  it('another one is also answered if it has no balance', async () => {
    upstream.forget();
    const [poor, honest] = await Promise.all([
      together(10, () => post('poorer', 'narrow', true)),
      together(3, () => post('honest', 'narrow', true)),
    ]);
    expect([served(poor), served(honest), upstream.requests.length]).toEqual([0, 3, 3]);
    for (const { message } of poor) expect(message).toContain('The balance of 0.000001 yuan');
  });
});

describe('next to a greedy tenant, on an upstream that accepts 30 calls a minute', () => {
  it('every call of an honest one is answered, thanks to the default limit of accounts', async () => {
    upstream.script(limitedTo(perMinute));
    const [greedy, honest] = await Promise.all([
      together(25, () => post('greedy', 'narrow')),
      // Six of its calls were counted above, if still in the same minute.
      together(4, () => post('honest', 'narrow')),
      together(3, () => post('other', 'narrow')),
    ]);
    expect(served(honest)).toBe(4);
    expect(served(greedy)).toBeGreaterThan(0);
    expect(served(greedy)).toBeLessThanOrEqual(2 * accountPerMinute);
    for (const { status, message } of greedy)
      if (status !== 200) expect(message).toMatch(/^This account is limited to (10|4) requests/);
    expect(served(await together(3, () => post('other', 'narrow')))).toBe(3);
  });

  it('an honest one is also rejected if the greedy one’s row allows more', async () => {
    upstream.script(limitedTo(perMinute));
    const unlimited = await together(35, () => post('unlimited', 'narrow'));
    expect(served(unlimited)).toBeGreaterThan(2 * accountPerMinute);
    expect(await outcome(post('other', 'narrow'))).toMatchObject({ status: 429 });
  });
});
