/** Applies every grant exactly once: when its row is written, or later if the table stream missed it. */
import { backgroundClient } from '../../shared/adapters/dynamodb/sdk-client.ts';
import { dynamoGrantStore } from '../../shared/adapters/dynamodb/ledger/dynamo-grant-store.ts';
import { readEnvironment } from '../../shared/adapters/system/environment.ts';
import { systemClock } from '../../shared/adapters/system/system-clock.ts';
import { systemRandom } from '../../shared/adapters/system/time-sorted-ids.ts';
import { backgroundMetrics } from '../../shared/adapters/telemetry/background-metrics.ts';
import { jsonLog } from '../../shared/adapters/telemetry/json-log.ts';
import { grantApplier } from '../../shared/relay/background/grant-applier.ts';

export function grantsJob() {
  const { aws, stack, version } = readEnvironment();
  const log = jsonLog(version);
  const metrics = backgroundMetrics(stack);
  const grants = dynamoGrantStore(backgroundClient(aws), stack);
  const applier = grantApplier({ clock: systemClock, random: systemRandom, grants, metrics, log });
  return {
    take: applier.apply,
    applyMissed: applier.applyMissed,
    poisoned: { event: 'grant_poisoned', metric: 'GrantPoisoned' } as const,
    log,
    metrics,
  };
}
