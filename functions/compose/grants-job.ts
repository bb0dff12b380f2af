/** Applies every grant exactly once, as its row is written, and later what the table stream missed. */
import { backgroundClient } from '../../shared/adapters/dynamodb/dynamo-client.ts';
import { dynamoGrantStore } from '../../shared/adapters/dynamodb/ledger/dynamo-grant-store.ts';
import { readEnvironment } from '../../shared/adapters/system/environment.ts';
import { systemClock } from '../../shared/adapters/system/system-clock.ts';
import { systemRandom } from '../../shared/adapters/system/system-random.ts';
import { backgroundMetrics } from '../../shared/adapters/telemetry/background-metrics.ts';
import { jsonLog } from '../../shared/adapters/telemetry/json-log.ts';
import { grantApplier } from '../../shared/relay/background/grant-applier.ts';
import type { ChangeJob } from '../../shared/relay/ports/change-job.ts';
import type { GrantImage } from '../../shared/relay/ports/grant-store.ts';

export function grantsJob(): ChangeJob<GrantImage> & { applyMissed(): Promise<void> } {
  const { aws, stack, version } = readEnvironment();
  const log = jsonLog(version);
  const metrics = backgroundMetrics(stack);
  const grants = dynamoGrantStore(backgroundClient(aws), stack);
  const applier = grantApplier({ clock: systemClock, random: systemRandom, grants, metrics, log });
  return {
    take: applier.apply,
    applyMissed: applier.applyMissed,
    poisoned: { event: 'grant_poisoned', metric: 'GrantPoisoned' },
    log,
    metrics,
  };
}
