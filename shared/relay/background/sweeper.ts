/** Closes reservations of invocations that were killed, crashed or timed out. */
import type { SweepResult, Log, Metrics } from '../ports/telemetry.ts';
import { formatYuan } from '../../billing/amount.ts';
import { closeExpired } from '../../billing/close-expired.ts';
import type { QuotaItem } from '../../billing/quota-item.ts';
import type { CloseWrite } from '../../billing/quota-writes.ts';
import { Poisoned } from '../ports/stores/store-errors.ts';
import { Backoff } from '../money/backoff.ts';
import type { Clock } from '../ports/clock.ts';
import type { Random } from '../ports/ids.ts';
import type { QuotaStore, QuotaScan, ScannedQuota } from '../ports/stores/quota-store.ts';

export interface SweeperPorts {
  clock: Clock;
  random: Random;
  scan: QuotaScan;
  quotas: Pick<QuotaStore, 'close'>;
  metrics: Metrics;
  log: Log;
}

const closeBudgetMs = 2_000;

/**
 * Returns a function that runs one sweep. A failed close is retried by the next sweep. An unreadable item is
 * skipped. Rejects when the scan fails.
 * @param graceSeconds how long after the end of its lease a reservation stays open
 */
export function sweeper(ports: SweeperPorts, graceSeconds: number): () => Promise<SweepResult> {
  return async () => {
    const result = { open: 0, expired: 0 };
    for await (const scanned of ports.scan.open()) {
      const item = readItem(ports, scanned);
      if (!item) continue;
      result.open += item.open.size;
      for (const write of closeExpired(item, Math.floor(ports.clock.now() / 1000), graceSeconds))
        if (await close(ports, write)) result.expired += 1;
    }
    result.open -= result.expired;
    return result;
  };
}

function readItem(ports: SweeperPorts, scanned: ScannedQuota): QuotaItem | undefined {
  try {
    return scanned.read();
  } catch (error) {
    if (!(error instanceof Poisoned)) throw error;
    ports.metrics.count('ReservationPoisoned');
    ports.log.event('reservation_poisoned', { account: scanned.account, problem: error.message });
    return undefined;
  }
}

/** Returns whether this run closed the reservation. */
async function close(ports: SweeperPorts, write: CloseWrite): Promise<boolean> {
  const { account, id, closeRecord } = write;
  try {
    const reply = await new Backoff(ports, closeBudgetMs).until(() => ports.quotas.close(write));
    // Not done: the call closed it, or renewed its lease, after the scan.
    if (!reply.done) return false;
    const charge = formatYuan(closeRecord.charge);
    ports.log.event('reservation_expired', { request_id: id, account, kind: closeRecord.kind, charge });
    return true;
  } catch (error) {
    ports.log.event('sweep_failed', { request_id: id, account });
    ports.log.fault(id, error);
    return false;
  }
}
