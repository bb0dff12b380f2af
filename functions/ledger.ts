/** Writes the ledger row of every close, checks that the account balances, and registers what is open. */
import { backgroundTimes, tableClient } from '../shared/adapters/dynamodb/table-client.ts';
import { dynamoLedgerStore } from '../shared/adapters/dynamodb/ledger-store.ts';
import { dynamoOpenRegistry } from '../shared/adapters/dynamodb/quotas/open-registry.ts';
import { readEnvironment, readSweepGraceSeconds } from '../shared/adapters/system/environment.ts';
import { systemClock, systemRandom } from '../shared/adapters/system/node-ports.ts';
import { backgroundMetrics } from '../shared/adapters/telemetry/metrics.ts';
import { jsonLog } from '../shared/adapters/telemetry/json-log.ts';
import { openWatch } from '../shared/relay/background/sweeper.ts';
import type { QuotaChange } from '../shared/relay/ports/money-stores.ts';
import { ledgerProjector } from '../shared/relay/background/ledger-projector.ts';
import { tableStreamBatchHandler, quotaChangeOf } from '../shared/adapters/entry/table-streams.ts';

function ledgerJob() {
  const { aws, stack, version } = readEnvironment();
  const log = jsonLog(version);
  const metrics = backgroundMetrics(stack);
  const client = tableClient(aws, backgroundTimes);
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

// Consumes the table stream of `quotas`: writes the ledger row of every close and checks that the account
// balances.

export const handler = tableStreamBatchHandler(quotaChangeOf, ledgerJob());
