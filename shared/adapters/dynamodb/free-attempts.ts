/**
 * Counts the attempts of calls that nothing was reserved for: free calls of keys without limits, which have no ledger row. They wait
 * in the environment for up to a minute, so that a busy free model costs one write a minute and sum. What waits is lost with the
 * environment: these are counts for people, not money.
 */
import { sumFreeAttempts } from '../../billing/daily-figures.ts';
import { formatLedgerTime, type CloseRow } from '../../billing/ledger-row.ts';
import type { Clock } from '../../relay/ports/host.ts';
import type { FreeAttempts } from '../../relay/ports/money-stores.ts';
import { addToDaily } from './daily-sums.ts';
import { singleAttempt, type TableClient } from './table-client.ts';

const pauseMs = 60_000;
const callsMax = 200;

export function createFreeAttempts(client: TableClient, clock: Clock, stack: string): FreeAttempts {
  let waiting: CloseRow[] = [];
  let writtenMs = -Infinity;
  return {
    async count(call) {
      const nowMs = clock.now();
      const none = { account: '', key: '', price: '', charge: 0n, reserved: 0n, kind: 'settled' } as const;
      waiting.push({ ...none, at: formatLedgerTime(Math.floor(nowMs / 1000)), ...call });
      if (nowMs - writtenMs < pauseMs && waiting.length < callsMax) return;
      const sums = sumFreeAttempts(waiting);
      [waiting, writtenMs] = [[], nowMs];
      await Promise.all(sums.map((sum) => client.call('UpdateItem', addToDaily(stack, sum), singleAttempt)));
    },
  };
}
