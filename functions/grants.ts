/** Applies every grant exactly once: when its row is written, or later if the table stream missed it. */
import { backgroundTimes, tableClient } from '../shared/adapters/dynamodb/table-client.ts';
import { dynamoGrantStore } from '../shared/adapters/dynamodb/grant-store.ts';
import { readEnvironment } from '../shared/adapters/system/environment.ts';
import { systemClock, systemRandom } from '../shared/adapters/system/node-ports.ts';
import { backgroundMetrics } from '../shared/adapters/telemetry/metrics.ts';
import { jsonLog } from '../shared/adapters/telemetry/json-log.ts';
import { grantApplier } from '../shared/relay/background/grant-applier.ts';
import {
  streamOrSchedule,
  tableStreamHandler,
  grantImageOf,
} from '../shared/adapters/entry/table-streams.ts';

function grantsJob() {
  const { aws, stack, version } = readEnvironment();
  const log = jsonLog(version);
  const metrics = backgroundMetrics(stack);
  const grants = dynamoGrantStore(tableClient(aws, backgroundTimes), stack);
  const applier = grantApplier({ clock: systemClock, random: systemRandom, grants, metrics, log });
  return {
    take: applier.apply,
    applyMissed: applier.applyMissed,
    poisoned: { event: 'grant_poisoned', metric: 'GrantPoisoned' } as const,
    log,
    metrics,
  };
}

// Applies every grant exactly once: from the table stream of `grants`, and on a slow schedule for rows that
// the stream missed.

const job = grantsJob();

export const handler = streamOrSchedule(tableStreamHandler(grantImageOf, job), job.applyMissed);
