import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runOps } from '../ops/run-ops.ts';
import { startFaultedStack, type FaultedStack } from '../support/faulted-stack.ts';

/** The running stack behind fault proxies: how a throttled store affects clients, and the balances afterwards. */
let stack: FaultedStack;

beforeAll(async () => {
  stack = await startFaultedStack();
});
afterAll(() => stack.stop());

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
