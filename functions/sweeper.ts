/** Runs every minute: closes reservations whose process can no longer run, and counts the open ones. */
import { createOpenRegistry, createQuotaScan } from '../shared/adapters/dynamodb/quotas/open-registry.ts';
import { createQuotaStore } from '../shared/adapters/dynamodb/quotas/quota-store.ts';
import { createEventHandler } from '../shared/adapters/entry/event-handler.ts';
import { readSweepGraceSeconds } from '../shared/adapters/system/environment.ts';
import { createJsonLog, createRequestMetrics } from '../shared/adapters/telemetry/log.ts';
import { createSweeper } from '../shared/relay/jobs/sweeper.ts';
import { composeJobDeps } from './compose/job-deps.ts';
import { connectTables } from './compose/late-adapters.ts';

const { client, stack, environment, ...deps } = composeJobDeps();
const sweep = createSweeper(
  {
    ...deps,
    registry: createOpenRegistry(client, stack),
    scan: createQuotaScan(client, stack),
    quotas: createQuotaStore(connectTables(environment), stack),
    log: createJsonLog(environment.version, createRequestMetrics(stack)),
  },
  readSweepGraceSeconds(),
);

export const handler = createEventHandler(deps.log, {
  schedule: async () => deps.metrics.countSweep(await sweep()),
});
