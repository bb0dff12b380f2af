import { describe, expect, it } from 'vitest';
import { TrialPlaces } from '../../../../shared/relay/health/health-states.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

describe('the places to try a candidate at rest', () => {
  it('go to another account next, however many calls of one wait before it', async () => {
    const clock = new VirtualClock();
    const places = new TrialPlaces(clock);
    const { signal } = new AbortController();
    const got: string[] = [];
    const take = async (account: string): Promise<void> => {
      if (await places.take(1, account, signal)) got.push(account);
    };
    const hostile = Array.from({ length: 100 }, () => take('hostile'));
    const honest = take('honest');
    await clock.run(honest);
    expect(got).toEqual(['hostile', 'hostile', 'hostile', 'honest']);
    await clock.run(Promise.all(hostile));
    expect(got).toHaveLength(101);
  });
});
