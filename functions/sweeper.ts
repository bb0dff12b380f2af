/**
 * Runs every minute: closes reservations whose invocation can no longer be running, and counts the open ones.
 */
import { dynamoOpenRegistry, dynamoQuotaScan } from '../shared/adapters/dynamodb/quotas/open-registry.ts';
import { dynamoQuotaStore } from '../shared/adapters/dynamodb/quotas/quota-store.ts';
import { eventHandler } from '../shared/adapters/entry/event-handler.ts';
import { readSweepGraceSeconds } from '../shared/adapters/system/environment.ts';
import { jsonLog, requestMetrics } from '../shared/adapters/telemetry/log.ts';
import { createSweeper } from '../shared/relay/jobs/sweeper.ts';
import { jobParts } from './compose/job-parts.ts';
import { tablesOf } from './compose/late-adapters.ts';

const { client, stack, environment, ...parts } = jobParts();
const sweep = createSweeper(
  {
    ...parts,
    registry: dynamoOpenRegistry(client, stack),
    scan: dynamoQuotaScan(client, stack),
    quotas: dynamoQuotaStore(tablesOf(environment), stack),
    log: jsonLog(environment.version, requestMetrics(stack)),
  },
  readSweepGraceSeconds(),
);

export const handler = eventHandler(parts.log, {
  schedule: async () => parts.metrics.swept(await sweep()),
});
