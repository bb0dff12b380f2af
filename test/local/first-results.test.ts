/** Stored answers of Idempotency-Keys on the running stack: from any environment, also after the first one has died. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startWatchedStack, type WatchedStack } from '../hardening/watched-stack.ts';
import { startScriptedUpstream, type ScriptedUpstream } from '../support/scripted-upstream.ts';
import { textStream } from '../support/upstream-scripts.ts';

let upstream: ScriptedUpstream;
let stack: WatchedStack;

beforeAll(async () => {
  upstream = await startScriptedUpstream();
  stack = await startWatchedStack({
    environmentsMax: 2,
    rows: [
      ['channels', { id: 'once', endpoint: upstream.endpoint, models: ['once'], state: true }],
      ['charges', { id: 20, type: 'token-billing', models: ['once'], input: 0.001, output: 0.001 }],
      ['settings', { name: 'store', value: true }],
    ],
  });
});
afterAll(async () => {
  await stack?.stop();
  await upstream?.close();
});
beforeEach(() => {
  upstream.script(textStream('Hello there.'));
  upstream.forget();
});

const post = (key: string, stream: boolean, content = 'Hello') =>
  stack.post(
    { model: 'once', stream, messages: [{ role: 'user', content }] },
    { headers: { 'idempotency-key': key } },
  );

const idOf = ({ headers }: Response): string => headers.get('x-request-id') ?? '';

/** The headers of an answer. */
const ownHeaders = ({ headers }: Response) =>
  Object.fromEntries([...headers].filter(([name]) => /^(content-type|x-relay-.*)$/.test(name)));

describe('a repeat of a key that may store', () => {
  it.each([false, true])('gets the first answer from a new environment, stream: %s', async (stream) => {
    const key = `answered ${stream}`;
    const first = await post(key, stream);
    const text = await first.text();
    expect(text).toContain('Hello');
    await stack.logged(idOf(first));
    stack.killChatProcesses();
    const again = await repeatedUntilAlive(() => post(key, stream));
    expect([again.status, await again.text()]).toEqual([200, text]);
    expect(ownHeaders(again)).toEqual({ ...ownHeaders(first), 'x-relay-replayed': idOf(first) });
    expect(upstream.requests).toHaveLength(1);
  });

  it('is told to wait while the first one runs, then gets its answer', async () => {
    const release = Promise.withResolvers<void>();
    upstream.script(async (call, reply) => {
      await release.promise;
      await textStream('Hello there.')(call, reply);
    });
    const running = post('running', false);
    await upstream.nextRequest();
    const early = await post('running', false);
    expect([early.status, early.headers.get('retry-after')]).toEqual([409, '5']);
    release.resolve();
    const first = await running;
    const text = await first.text();
    await stack.logged(idOf(first));
    expect(await (await post('running', false)).text()).toBe(text);
    const other = await post('running', false, 'Goodbye');
    expect(other.status).toBe(422);
    expect(await other.json()).toMatchObject({ error: { param: 'messages' } });
    expect(upstream.requests).toHaveLength(1);
  });
});

/** Retries a call that hits a dying environment, which is a 502, as on Lambda. */
async function repeatedUntilAlive(call: () => Promise<Response>): Promise<Response> {
  for (;;) {
    const response = await call();
    if (response.status !== 502) return response;
    await response.text();
  }
}
