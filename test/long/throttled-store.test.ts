import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runOps } from '../ops/run-ops.ts';
import { startFaultedStack, type FaultedStack } from '../support/faulted-stack.ts';

/** Throttles the whole store for 30 s, longer than the clients of test/local wait. */
let stack: FaultedStack;

beforeAll(async () => {
  stack = await startFaultedStack();
});
afterAll(() => stack.stop());

describe('the running stack', () => {
  it.each([1, 0.5, 0.1])(
    'recovers within 5 s after its store was throttled for 30 s, share %s',
    { timeout: 120_000 },
    async (share) => {
      const { statuses, askedSeconds } = await stack.throttledFor({ forMs: 30_000, share });
      expect([...statuses].filter((status) => status !== 200 && status !== 503)).toEqual([]);
      expect(Math.max(...askedSeconds)).toBeLessThan(5);
    },
  );

  it('has lost or doubled no charge', { timeout: 120_000 }, async () => {
    await stack.untilClosed();
    const { spent, charged, available, granted } = await stack.sums();
    expect({ sum: spent + available, charged }).toEqual({ sum: granted, charged: spent });
    expect(spent).toBe(stack.answered * stack.price);
    const audit = await runOps(['audit', '--wait', '0'], { AWS_ENDPOINT_URL_DYNAMODB: stack.endpoint });
    expect(audit.output).toContain('all balances match');
  });
});
