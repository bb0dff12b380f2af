/** Every minute: closes the reservations of invocations that can no longer live. */
import { systemClock } from '../shared/adapters/clock.ts';
import { documentClient } from '../shared/adapters/dynamo.ts';
import { readEnvironment, readSweepGraceSeconds } from '../shared/adapters/environment.ts';
import { jsonLog } from '../shared/adapters/log.ts';
import { dynamoQuotaScan } from '../shared/adapters/quota-scan.ts';
import { dynamoQuotaStore } from '../shared/adapters/quota-store.ts';
import { systemRandom } from '../shared/adapters/random.ts';
import { requestMetrics } from '../shared/adapters/request-metrics.ts';
import { streamClient } from '../shared/adapters/stream-client.ts';
import { embeddedMetrics } from '../shared/adapters/stream-metrics.ts';
import { sweeper } from '../shared/relay/sweeper.ts';

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
