/**
 * Counts the attempts of calls without a reservation: free calls of keys without limits, which have no ledger row. Buffers them in the
 * environment for up to a minute, so that a busy free model costs one write a minute and sum. If the environment dies, its buffer is lost:
 * people read these counts, but no money depends on them.
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
