/** Closes reservations whose invocation can no longer be running, and counts the open ones. */
import { backgroundTimes, tableClient } from '../shared/adapters/dynamodb/table-client.ts';
import { dynamoOpenRegistry, dynamoQuotaScan } from '../shared/adapters/dynamodb/quotas/open-registry.ts';
import { dynamoQuotaStore } from '../shared/adapters/dynamodb/quotas/quota-store.ts';
import { readEnvironment, readSweepGraceSeconds } from '../shared/adapters/system/environment.ts';
import { systemClock, systemRandom } from '../shared/adapters/system/node-ports.ts';
import { backgroundMetrics, requestMetrics } from '../shared/adapters/telemetry/metrics.ts';
import { jsonLog } from '../shared/adapters/telemetry/json-log.ts';
import { sweeper } from '../shared/relay/background/sweeper.ts';

function sweeperJob(): () => Promise<void> {
  const { aws, stack, version } = readEnvironment();
  const metrics = backgroundMetrics(stack);
  const client = tableClient(aws, backgroundTimes);
  const sweep = sweeper(
    {
      clock: systemClock,
      random: systemRandom,
      registry: dynamoOpenRegistry(client, stack),
      scan: dynamoQuotaScan(client, stack),
      quotas: dynamoQuotaStore(tableClient(aws), stack),
      metrics,
      log: jsonLog(version, requestMetrics(stack)),
    },
    readSweepGraceSeconds(),
  );
  return async () => metrics.swept(await sweep());
}

// Runs every minute: closes reservations whose invocation can no longer be running.

export const handler = sweeperJob();
