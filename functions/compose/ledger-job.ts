/** Writes the ledger row of every close and checks that the account balances. */
import { backgroundClient } from '../../shared/adapters/dynamodb/dynamo-client.ts';
import { dynamoLedgerStore } from '../../shared/adapters/dynamodb/ledger/dynamo-ledger-store.ts';
import { readEnvironment } from '../../shared/adapters/system/environment.ts';
import { systemClock } from '../../shared/adapters/system/system-clock.ts';
import { systemRandom } from '../../shared/adapters/system/system-random.ts';
import { backgroundMetrics } from '../../shared/adapters/telemetry/background-metrics.ts';
import { jsonLog } from '../../shared/adapters/telemetry/json-log.ts';
import { ledgerProjector } from '../../shared/relay/background/ledger-projector.ts';

export function ledgerJob() {
  const { aws, stack, version } = readEnvironment();
  const log = jsonLog(version);
  const metrics = backgroundMetrics(stack);
  const ledger = dynamoLedgerStore(backgroundClient(aws), stack);
  return {
    takeAll: ledgerProjector({ clock: systemClock, random: systemRandom, ledger, metrics, log }),
    poisoned: { event: 'ledger_poisoned', metric: 'LedgerPoisoned' } as const,
    log,
    metrics,
  };
}
