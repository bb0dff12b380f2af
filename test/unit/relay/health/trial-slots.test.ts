import { describe, expect, it } from 'vitest';
import { TrialSlots } from '../../../../shared/relay/health/health-states.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

describe('the slots to try a candidate at rest', () => {
  it('are three at once, in the order of arrival, and none is lost to a call that leaves', async () => {
    const clock = new VirtualClock();
    const slots = new TrialSlots(clock);
    const got: number[] = [];
    const leaves = new AbortController();
    const take = async (call: number, signal = new AbortController().signal): Promise<void> => {
      if (await slots.take(1, signal)) got.push(call);
    };
    const calls = [0, 1, 2, 3, 4].map((call) => take(call, call === 3 ? leaves.signal : undefined));
    await clock.run(Promise.all(calls.slice(0, 3)));
    expect(got).toEqual([0, 1, 2]);
    leaves.abort();
    await clock.run(Promise.all(calls));
    expect(got).toEqual([0, 1, 2, 4]);
  });
});
