import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startWatchedStack, type WatchedStack } from '../hardening/watched-stack.ts';
import { startScriptedUpstream, type ScriptedUpstream } from '../support/scripted-upstream.ts';
import { errorStatus } from '../support/upstream-failures.ts';
import { textStream } from '../support/upstream-scripts.ts';

/** Cooldowns are cached for 8 s at most; a busy machine may take a little longer. */
const sharedWithin = { timeout: 15_000, interval: 1_000 };

const limited = errorStatus(429, {}, { 'retry-after': '30' });

let first: ScriptedUpstream;
let second: ScriptedUpstream;
/** Keeps an environment busy for as long as the test wants. */
let held: ScriptedUpstream;
let stack: WatchedStack;

beforeAll(async () => {
  [first, second, held] = await Promise.all([
    startScriptedUpstream(),
    startScriptedUpstream(),
    startScriptedUpstream(),
  ]);
  const channel = (id: string, upstream: ScriptedUpstream, models: string[], priority: number) => ({
    id,
    endpoint: upstream.endpoint,
    models,
    priority,
    state: true,
  });
  stack = await startWatchedStack({
    environmentsMax: 2,
    rows: [
      ['channels', channel('alone', first, ['alone'], 0)],
      ['channels', channel('preferred', first, ['pair'], 2)],
      ['channels', channel('reserve', second, ['pair'], 1)],
      ['channels', channel('held', held, ['held'], 0)],
    ],
  });
});
afterAll(async () => {
  await stack?.stop();
  await Promise.all([first, second, held].map((upstream) => upstream?.close()));
});
beforeEach(() => {
  for (const upstream of [first, second]) {
    upstream.script(textStream('Hello there.'));
    upstream.forget();
  }
});

interface ClientView {
  status: number;
  attempts: string | null;
  retryAfter: string | null;
  text: string;
}

/** One complete call as its client sees it, after the function has stored everything. */
async function ask(model: string, more: object = {}): Promise<ClientView> {
  const response = await stack.post({ model, messages: [{ role: 'user', content: 'Hello' }], ...more });
  const text = await response.text();
  const { headers, status } = response;
  await stack.logged(headers.get('x-request-id') ?? '');
  return { status, attempts: headers.get('x-relay-attempts'), retryAfter: headers.get('retry-after'), text };
}

/** Keeps a free environment busy. Resolves with a function that ends that. */
async function occupyOne(): Promise<() => Promise<void>> {
  const release = Promise.withResolvers<void>();
  held.script(async (call, reply) => {
    await release.promise;
    await textStream('Hello there.')(call, reply);
  });
  const answer = ask('held');
  await held.nextRequest();
  return async () => {
    release.resolve();
    await answer;
  };
}

/** Makes the call in each of the two environments: while one is busy, the other answers. */
async function inEachEnvironment<T>(call: () => Promise<T>): Promise<[T, T]> {
  const freeOne = await occupyOne();
  const inOther = await call();
  const freeOther = await occupyOne();
  await freeOne();
  const inOne = await call();
  await freeOther();
  return [inOne, inOther];
}

/** The statuses of the model with one channel, and the number of attempts of the model with two. */
const seen = async (): Promise<string> => {
  const alone = await ask('alone');
  const pair = await ask('pair');
  return `${alone.status}, ${pair.status} after ${pair.attempts}`;
};

describe('a channel that fails', () => {
  it.each([true, false])(
    'is replaced by the next one, invisibly to the client, stream %s',
    async (stream) => {
      first.script(errorStatus(500));
      const view = await ask('pair', { stream });
      expect(view).toMatchObject({ status: 200, attempts: '2' });
      expect(view.text).not.toMatch(/error|upstream words/);
      expect(view.text).toContain(stream ? '[DONE]' : 'Hello there.');
      expect([first.requests.length, second.requests.length]).toEqual([1, 1]);
    },
  );

  it('with a rate limit and a time in one environment is skipped by all others', async () => {
    expect(await inEachEnvironment(seen)).toEqual(['200, 200 after 1', '200, 200 after 1']);
    expect(stack.chatProcesses()).toHaveLength(2);

    const free = await occupyOne();
    first.script(limited);
    expect(await ask('alone')).toMatchObject({ status: 429, retryAfter: '30' });
    expect(await ask('pair')).toMatchObject({ status: 200, attempts: '2' });
    await free();

    // It would answer again, which an environment without the cooldown would find out.
    first.script(textStream('Hello there.'));
    const known = '429, 200 after 1';
    await expect
      .poll(async () => {
        first.forget();
        const answers = await inEachEnvironment(seen);
        return [...answers, first.requests.length];
      }, sharedWithin)
      .toEqual([known, known, 0]);
    const { retryAfter, text } = await ask('alone');
    expect(Number(retryAfter)).toBeGreaterThan(0);
    expect(Number(retryAfter)).toBeLessThanOrEqual(30);
    expect(JSON.parse(text)).toMatchObject({ error: { type: 'rate_limit_error' } });
  });
});
