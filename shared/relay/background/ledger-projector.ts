/** Converts each write on an account's item to the ledger row of the reservation that the write closed. */
import { type QuotaChange, type LedgerStore } from '../ports/stores/ledger-store.ts';
import { formatYuan } from '../../billing/amount.ts';
import { closeRowBetween, type CloseRow } from '../../billing/ledger-row.ts';
import { imbalance } from '../../billing/quota-item.ts';
import type { Metrics, Log } from '../ports/telemetry.ts';
import { Poisoned } from '../ports/stores/store-errors.ts';

export interface LedgerProjectorPorts {
  ledger: LedgerStore;
  metrics: Metrics;
  log: Log;
}

/**
 * Accepts changes in any order and repeatedly. Also checks that the item's amounts balance. Rejects with
 * Poisoned when the change can never give a row, otherwise with the store's error: the change then needs a
 * retry.
 */
export function ledgerProjector(ports: LedgerProjectorPorts): (change: QuotaChange) => Promise<void> {
  return async (change) => {
    checkBalance(ports, change);
    const row = rowOf(change);
    if (row) await ports.ledger.putIfAbsent(row);
  };
}

function rowOf({ before, after }: QuotaChange): CloseRow | undefined {
  try {
    return closeRowBetween(before, after);
  } catch (error) {
    throw new Poisoned(error instanceof Error ? error.message : 'no row', { cause: error });
  }
}

function checkBalance({ metrics, log }: LedgerProjectorPorts, { account, after }: QuotaChange): void {
  const difference = after && imbalance(after);
  if (after && difference === undefined) return;
  metrics.count('ConservationBroken');
  const why = difference === undefined ? 'the item was removed' : `off by ${formatYuan(difference)} yuan`;
  log.event('conservation_broken', { account, last_id: after?.last?.id, why });
}
