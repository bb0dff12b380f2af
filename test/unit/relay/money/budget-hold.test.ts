import { beforeEach, describe, expect, it } from 'vitest';
import { Backoff } from '../../../../shared/relay/money/backoff.ts';
import { BudgetHold } from '../../../../shared/relay/money/budget-hold.ts';
import { StoreBusy, StoreUnavailable } from '../../../../shared/relay/ports/store-errors.ts';
import { MemoryKeyCounters } from '../../../support/memory-key-counters.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

/** Counters whose next changes meet these errors. `applied`: the reply was lost after the change. */
class FaultyCounters extends MemoryKeyCounters {
  readonly faults: (Error | 'applied')[] = [];

  override async change(...of: Parameters<MemoryKeyCounters['change']>): Promise<void> {
    const fault = this.faults.shift();
    if (fault instanceof Error) throw fault;
    await super.change(...of);
    if (fault) throw new StoreUnavailable('the reply was lost');
  }
}

describe('what a call held of its budget and does not take', () => {
  let counters: FaultyCounters;
  let hold: BudgetHold;
  const clock = new VirtualClock();
  const use = () => counters.budgets.get('key#2026-11');

  beforeEach(async () => {
    counters = new FaultyCounters();
    const counter = { key: 'key', period: '2026-11', expires: 0 };
    const backoff = new Backoff({ clock, random: { next: () => 0.5 } }, 1_500);
    hold = new BudgetHold(counters, backoff, { counter, call: 'call', most: 100n, resetsAtMs: 0 });
    await hold.covers(60n);
  });

  it('becomes free also while the projector writes the same counter', async () => {
    counters.faults.push(new StoreBusy('conflict'), new StoreBusy('conflict'));
    await clock.run(hold.release());
    expect(use()).toEqual({ used: 0n, running: 0 });
  });

  it('becomes free once when the reply is lost', async () => {
    counters.faults.push('applied');
    await clock.run(hold.keep(20n));
    expect(use()).toEqual({ used: 20n, running: 1 });
    expect(hold.left).toBe(100n);
  });

  it('is held once when the reply to the hold is lost', async () => {
    await clock.run(hold.release());
    counters.faults.push('applied');
    expect(await clock.run(hold.covers(90n))).toBe(true);
    expect(use()).toEqual({ used: 90n, running: 1 });
  });
});
