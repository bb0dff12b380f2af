/** Every minute: closes the reservations of invocations that can no longer live. */
import { systemClock } from '../shared/adapters/system/system-clock.ts';
import { documentClient } from '../shared/adapters/dynamodb/dynamo-client.ts';
import { readEnvironment, readSweepGraceSeconds } from '../shared/adapters/system/environment.ts';
import { jsonLog } from '../shared/adapters/telemetry/json-log.ts';
import { dynamoQuotaScan } from '../shared/adapters/dynamodb/quotas/dynamo-quota-scan.ts';
import { dynamoQuotaStore } from '../shared/adapters/dynamodb/quotas/dynamo-quota-store.ts';
import { systemRandom } from '../shared/adapters/system/system-random.ts';
import { requestMetrics } from '../shared/adapters/telemetry/request-metrics.ts';
import { streamClient } from '../shared/adapters/dynamodb/stream-client.ts';
import { embeddedMetrics } from '../shared/adapters/telemetry/background-metrics.ts';
import { sweeper } from '../shared/relay/background/sweeper.ts';

const { stack, version, aws } = readEnvironment();
const metrics = embeddedMetrics(stack);

const sweep = sweeper(
  {
    clock: systemClock,
    random: systemRandom,
    scan: dynamoQuotaScan(streamClient(aws), stack),
    quotas: dynamoQuotaStore(documentClient(aws), stack),
    metrics,
    log: jsonLog(version, requestMetrics(stack)),
  },
  readSweepGraceSeconds(),
);

export const handler = async (): Promise<void> => metrics.swept(await sweep());
