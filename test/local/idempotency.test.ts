import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startWatchedStack, type WatchedStack } from '../hardening/watched-stack.ts';
import { startScriptedUpstream, type ScriptedUpstream } from '../support/scripted-upstream.ts';
import { errorStatus } from '../support/upstream-failures.ts';
import { textStream } from '../support/upstream-scripts.ts';

let upstream: ScriptedUpstream;
let stack: WatchedStack;

beforeAll(async () => {
  upstream = await startScriptedUpstream();
  stack = await startWatchedStack({
    environmentsMax: 2,
    functionEnvironment: { RELAY_SWEEP_GRACE: '0' },
    rows: [
      ['channels', { id: 'once', endpoint: upstream.endpoint, models: ['once'], state: true }],
      ['charges', { id: 20, type: 'token-billing', models: ['once'], input: 0.001, output: 0.001 }],
      ['settings', { name: 'limits', value: { request_seconds: 4 } }],
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

const post = (idempotencyKey: string, content = 'Hello') =>
  stack.post(
    { model: 'once', messages: [{ role: 'user', content }] },
    { headers: { 'idempotency-key': idempotencyKey } },
  );
function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It is dead already.
  }
}

const idOf = ({ headers }: Response): string => headers.get('x-request-id') ?? '';

/** A call that was answered and whose end is written down. */
async function completed(idempotencyKey: string): Promise<string> {
  const first = await post(idempotencyKey);
  expect(first.status).toBe(200);
  expect(await first.text()).toContain('Hello there.');
  await stack.logged(idOf(first));
  return idOf(first);
}

async function expectRefused(
  response: Response,
  status: number,
  code: string,
  firstId: string,
): Promise<void> {
  expect(response.status).toBe(status);
  expect(response.headers.get('x-should-retry')).toBe('false');
  expect(await response.json()).toMatchObject({
    error: { type: 'invalid_request_error', code, message: expect.stringContaining(firstId) },
  });
}

describe('a request with an Idempotency-Key', () => {
  it('that was completed is refused when repeated, with the id of the first', async () => {
    const firstId = await completed('completed');
    await expectRefused(await post('completed'), 409, 'request_already_completed', firstId);
    expect(upstream.requests).toHaveLength(1);
  });

  it('is refused when its key was used with another body', async () => {
    const firstId = await completed('reused');
    await expectRefused(await post('reused', 'Goodbye'), 422, 'idempotency_key_reused', firstId);
    expect(upstream.requests).toHaveLength(1);
  });

  it('is refused while the first one runs, in whatever environment', async () => {
    const release = Promise.withResolvers<void>();
    upstream.script(async (call, reply) => {
      await release.promise;
      await textStream('Hello there.')(call, reply);
    });
    const running = post('running');
    await upstream.nextRequest();
    const repeated = await post('running');
    release.resolve();
    const first = await running;
    expect(first.status).toBe(200);
    await expectRefused(repeated, 409, 'request_in_progress', idOf(first));
    expect(upstream.requests).toHaveLength(1);
  });

  it('may be repeated once the sweeper closed the call of an environment that was killed', async () => {
    const reached = upstream.nextRequest();
    upstream.script(async (_call, reply) => reply.hang());
    const killed = post('killed').catch(() => undefined);
    await reached;
    for (const pid of stack.chatProcesses()) killQuietly(pid);
    await killed;
    upstream.script(textStream('Hello there.'));
    const statuses = new Set<number>();
    for (;;) {
      const { status } = await post('killed');
      if (status === 200) break;
      statuses.add(status);
      await new Promise((resolve) => setTimeout(resolve, 200));
      await stack.runSchedules();
    }
    // A call that meets an environment as it dies is a 502, as on Lambda.
    statuses.delete(502);
    expect([...statuses]).toEqual([409]);
  });

  it('may be repeated when the first one failed and cost nothing', async () => {
    upstream.script(errorStatus(500));
    const failed = await post('failed');
    expect(failed.status).toBe(502);
    await failed.text();
    await stack.logged(idOf(failed));
    upstream.script(textStream('Hello there.'));
    expect((await post('failed')).status).toBe(200);
    expect(upstream.requests).toHaveLength(2);
  });
});
