/** Writes the ledger row of every close, checks that the account balances, and registers what is open. */
import { backgroundClient } from '../../shared/adapters/dynamodb/sdk-client.ts';
import { dynamoLedgerStore } from '../../shared/adapters/dynamodb/ledger/dynamo-ledger-store.ts';
import { dynamoOpenRegistry } from '../../shared/adapters/dynamodb/quotas/dynamo-open-registry.ts';
import { readEnvironment, readSweepGraceSeconds } from '../../shared/adapters/system/environment.ts';
import { systemClock } from '../../shared/adapters/system/system-clock.ts';
import { systemRandom } from '../../shared/adapters/system/time-sorted-ids.ts';
import { backgroundMetrics } from '../../shared/adapters/telemetry/background-metrics.ts';
import { jsonLog } from '../../shared/adapters/telemetry/json-log.ts';
import { openWatch } from '../../shared/relay/background/open-watch.ts';
import type { QuotaChange } from '../../shared/relay/ports/stores/ledger-store.ts';
import { ledgerProjector } from '../../shared/relay/background/ledger-projector.ts';

export function ledgerJob() {
  const { aws, stack, version } = readEnvironment();
  const log = jsonLog(version);
  const metrics = backgroundMetrics(stack);
  const client = backgroundClient(aws);
  const ledger = dynamoLedgerStore(client, stack);
  const registry = dynamoOpenRegistry(client, stack);
  const watch = openWatch({ clock: systemClock, registry }, readSweepGraceSeconds());
  const project = ledgerProjector({ clock: systemClock, random: systemRandom, ledger, metrics, log });
  return {
    async takeAll(changes: readonly QuotaChange[]) {
      await watch(changes);
      return project(changes);
    },
    poisoned: { event: 'ledger_poisoned', metric: 'LedgerPoisoned' } as const,
    log,
    metrics,
  };
}
