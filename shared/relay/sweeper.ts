import { formatYuan } from '../billing/amount.ts';
import { closeExpired } from '../billing/close-expired.ts';
import type { CloseWrite } from '../billing/quota-writes.ts';
import { Poisoned, type Metrics } from './ledger-keeper-ports.ts';
import { Patience } from './patience.ts';
import type { Clock, Log, Random } from './ports.ts';
import type { QuotaStore } from './quota-store.ts';
import type { QuotaScan, ScannedQuota } from './sweeper-ports.ts';

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
 * Closes the reservations that nobody came back for: killed, crashed or timed-out invocations. A close that fails is
 * left to the next run, and an item that cannot be read holds up no other. Rejects when the scan itself fails.
 */
export function sweeper(ports: SweeperPorts, graceSeconds: number): () => Promise<void> {
  return async () => {
    for await (const scanned of ports.scan.open()) {
      for (const write of expiredOf(ports, scanned, graceSeconds)) await close(ports, write);
    }
  };
}

function expiredOf(ports: SweeperPorts, scanned: ScannedQuota, graceSeconds: number): CloseWrite[] {
  try {
    return closeExpired(scanned.read(), Math.floor(ports.clock.now() / 1000), graceSeconds);
  } catch (error) {
    if (!(error instanceof Poisoned)) throw error;
    ports.metrics.count('ReservationPoisoned');
    ports.log.event('reservation_poisoned', { account: scanned.account, problem: error.message });
    return [];
  }
}

async function close(ports: SweeperPorts, write: CloseWrite): Promise<void> {
  const { account, id, journal } = write;
  try {
    const reply = await new Patience(ports, closeBudgetMs).until(() => ports.quotas.close(write));
    // Not done: it was settled after all, between the scan and now.
    if (!reply.done) return;
    const charge = formatYuan(journal.charge);
    ports.log.event('reservation_expired', { request_id: id, account, kind: journal.kind, charge });
  } catch (error) {
    ports.log.event('sweep_failed', { request_id: id, account });
    ports.log.fault(id, error);
  }
}
