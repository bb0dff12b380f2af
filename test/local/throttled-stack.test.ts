import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runOps } from '../ops/run-ops.ts';
import { textStream } from '../support/upstream-scripts.ts';
import { keyOf } from './money-reader.ts';
import { startFaultedStack, type FaultedStack } from '../support/faulted-stack.ts';

/** The running stack behind fault proxies: how a throttled store affects clients, and the balances afterwards. */
let stack: FaultedStack;

beforeAll(async () => {
  stack = await startFaultedStack();
});
afterAll(() => stack.stop());

const post = (): Promise<Response> =>
  stack.post(
    { model: 'metered', messages: [{ role: 'user', content: 'hi' }] },
    { headers: { authorization: `Bearer ${keyOf('warm')}` } },
  );

describe('the running stack', () => {
  it('answers four parallel first calls on a slow, throttling store', async () => {
    // Two for each table, because an operation has three attempts: random throttles of a tenth hit one three times in some 5 % of runs.
    for (const table of ['keys', 'accounts', 'quotas', 'runtime'])
      stack.store.rules.add({
        fault: { kind: 'throttle' },
        services: ['dynamodb'],
        tables: [table],
        times: 2,
      });
    stack.store.rules.add({ fault: { kind: 'slow', delayMs: 100 }, services: ['dynamodb'] });
    const answers = await Promise.all(Array.from({ length: 4 }, () => stack.call()));
    stack.store.rules.clear();
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(stack.store.counts.faults.throttle).toBe(8);
  });

  it('needs two UpdateItem for a warm call and no read; one of them comes before the upstream request', async () => {
    /** Store requests of the answering function; functions on streams make their own. */
    const asked = (): string[] =>
      stack.calls
        .map(({ action, table }) => `${action} ${table}`)
        .filter((call) => /^(GetItem|BatchGetItem|UpdateItem|PutItem) /.test(call))
        .filter((call) => !/relay-(ledger|grants|daily)$/.test(call));
    let atUpstream: string[] = [];
    stack.upstream.script(async (call, reply) => {
      atUpstream = asked();
      await textStream('Hello there.')(call, reply);
    });
    let calls = ['GetItem'];
    // The first calls find neither key nor configuration.
    while (calls.some((call) => /^(Batch)?GetItem/.test(call))) {
      stack.calls.length = 0;
      const answer = await post();
      await answer.text();
      await stack.logged(answer.headers.get('x-request-id') ?? '');
      calls = asked();
    }
    expect(calls).toEqual(['UpdateItem relay-quotas', 'UpdateItem relay-quotas']);
    expect(atUpstream).toEqual(['UpdateItem relay-quotas']);
  });

  it('answers 503 and calls no upstream if the store is down before the reservation', async () => {
    stack.upstream.forget();
    stack.store.rules.add({ fault: { kind: 'error' }, services: ['dynamodb'] });
    const answer = await post().finally(() => stack.store.rules.clear());
    expect(answer.status).toBe(503);
    expect(answer.headers.get('retry-after')).not.toBeNull();
    expect(await answer.json()).toMatchObject({ error: { type: 'internal_error', code: 'unavailable' } });
    expect(stack.upstream.requests).toHaveLength(0);
  });

  it.each([
    ['1 s', 1_000, 1],
    ['2 s', 2_000, 0.5],
  ])(
    'recovers within 5 s after its store was throttled for %s, with exact balances',
    async (_words, forMs, share) => {
      const { statuses, askedSeconds } = await stack.throttledFor({ forMs, share });
      expect([...statuses].filter((status) => status !== 200 && status !== 503)).toEqual([]);
      expect(Math.max(...askedSeconds)).toBeLessThan(5);
    },
  );

  it('has lost or doubled no charge', { timeout: 60_000 }, async () => {
    await stack.untilClosed();
    const { spent, charged, available, granted } = await stack.sums();
    expect(spent + available).toBe(granted);
    expect(charged).toBe(spent);
    expect(spent).toBe(stack.answered * stack.price);
    const audit = await runOps(['audit', '--wait', '0'], { AWS_ENDPOINT_URL_DYNAMODB: stack.endpoint });
    expect(audit.output).toContain('all balances match');
    expect(stack.log()).not.toContain('settle_lost');
  });
});
