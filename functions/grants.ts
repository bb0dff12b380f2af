/** Stream of `grants`, and a slow schedule for what the stream missed: applies every top-up exactly once. */
import { systemClock } from '../shared/adapters/system/system-clock.ts';
import { readEnvironment } from '../shared/adapters/system/environment.ts';
import { dynamoGrantStore } from '../shared/adapters/dynamodb/ledger/dynamo-grant-store.ts';
import { jsonLog } from '../shared/adapters/telemetry/json-log.ts';
import { systemRandom } from '../shared/adapters/system/system-random.ts';
import { streamClient } from '../shared/adapters/dynamodb/stream-client.ts';
import { streamHandler, streamOrSchedule } from '../shared/adapters/table-streams/table-stream-handler.ts';
import { embeddedMetrics } from '../shared/adapters/telemetry/background-metrics.ts';
import { grantImageOf } from '../shared/adapters/table-streams/table-stream-records.ts';
import { grantApplier } from '../shared/relay/background/grant-applier.ts';

const { stack, version, aws } = readEnvironment();
const log = jsonLog(version);
const metrics = embeddedMetrics(stack);
const grants = dynamoGrantStore(streamClient(aws), stack);
const applier = grantApplier({ clock: systemClock, random: systemRandom, grants, metrics, log });

const onRecords = streamHandler({
  read: grantImageOf,
  keep: applier.keep,
  poisoned: { event: 'grant_poisoned', metric: 'GrantPoisoned' },
  log,
  metrics,
});

export const handler = streamOrSchedule(onRecords, applier.keepMissed);
