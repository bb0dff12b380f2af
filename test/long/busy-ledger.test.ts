import { expect, it } from 'vitest';
import { expectCountedOnce, runBusyLedger } from '../simulation/hot/busy-scenarios.ts';

const minutes = 60_000;

it.each([4, 8, 16])(
  '2,000 closes a second of 10,000 accounts for 300 s, in %i shards, are in the ledger once, 5 s after they were gathered',
  { timeout: 60 * minutes },
  async (shards) => {
    const busy = await runBusyLedger({ seconds: 300, shards, crash: 0.002, lost: 0.001 });
    console.log(
      `${shards} shards: half of the rows after ${busy.lagMs(50)} ms, 99 % after ${busy.lagMs(99)}, all after ${busy.lagMs(100)};`,
      busy.tables.counts,
    );
    expect(busy.lagMs(100)).toBeLessThan(10_000);
    await expectCountedOnce(busy);
  },
);
