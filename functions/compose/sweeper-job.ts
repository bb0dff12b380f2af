/** Closes reservations whose invocation can no longer be running, and counts the open ones. */
import { backgroundClient, documentClient, tablesOn } from '../../shared/adapters/dynamodb/sdk-client.ts';
import { dynamoOpenRegistry } from '../../shared/adapters/dynamodb/quotas/dynamo-open-registry.ts';
import { dynamoQuotaScan } from '../../shared/adapters/dynamodb/quotas/dynamo-quota-scan.ts';
import { dynamoQuotaStore } from '../../shared/adapters/dynamodb/quotas/dynamo-quota-store.ts';
import { readEnvironment, readSweepGraceSeconds } from '../../shared/adapters/system/environment.ts';
import { systemClock } from '../../shared/adapters/system/system-clock.ts';
import { systemRandom } from '../../shared/adapters/system/time-sorted-ids.ts';
import { backgroundMetrics } from '../../shared/adapters/telemetry/background-metrics.ts';
import { jsonLog } from '../../shared/adapters/telemetry/json-log.ts';
import { requestMetrics } from '../../shared/adapters/telemetry/request-metrics.ts';
import { sweeper } from '../../shared/relay/background/sweeper.ts';

export function sweeperJob(): () => Promise<void> {
  const { aws, stack, version } = readEnvironment();
  const metrics = backgroundMetrics(stack);
  const client = backgroundClient(aws);
  const sweep = sweeper(
    {
      clock: systemClock,
      random: systemRandom,
      registry: dynamoOpenRegistry(client, stack),
      scan: dynamoQuotaScan(client, stack),
      quotas: dynamoQuotaStore(tablesOn(documentClient(aws)), stack),
      metrics,
      log: jsonLog(version, requestMetrics(stack)),
    },
    readSweepGraceSeconds(),
  );
  return async () => metrics.swept(await sweep());
}
