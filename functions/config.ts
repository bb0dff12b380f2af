/** Streams of the tables that operators edit, and a schedule: publishes the configuration, marks rows with mistakes. */
import { systemClock } from '../shared/adapters/system/system-clock.ts';
import { configHandler } from '../shared/adapters/table-streams/config-stream-handler.ts';
import { configPublisher } from '../shared/relay/background/config-publisher.ts';
import { embeddedConfigMetrics } from '../shared/adapters/telemetry/config-metrics.ts';
import { unreadableSecrets } from '../shared/adapters/secrets/secret-check.ts';
import { scanConfigTables } from '../shared/adapters/dynamodb/dynamo-config-tables.ts';
import { documentsOn } from '../shared/adapters/dynamodb/dynamo-client.ts';
import { readEnvironment } from '../shared/adapters/system/environment.ts';
import { jsonLog } from '../shared/adapters/telemetry/json-log.ts';
import { systemRandom } from '../shared/adapters/system/system-random.ts';
import { secretStore } from '../shared/adapters/secrets/cached-secret-store.ts';
import { dynamoSnapshotStore } from '../shared/adapters/dynamodb/runtime/dynamo-config-store.ts';
import { streamClient } from '../shared/adapters/dynamodb/stream-client.ts';
import { writeMarks, type ValidatedRow } from '../shared/adapters/dynamodb/dynamo-row-marks.ts';

const environment = readEnvironment();
const { stack, version, aws, local } = environment;
const clock = systemClock;
const client = documentsOn(streamClient(aws));
const metrics = embeddedConfigMetrics(stack);
const secrets = secretStore({ environment, clock });
const mark = (rows: ValidatedRow[]): Promise<void> => writeMarks(client, stack, rows);

const keep = configPublisher({
  clock,
  random: systemRandom,
  log: jsonLog(version),
  metrics,
  local,
  snapshots: dynamoSnapshotStore(client, stack, clock),
  scan: () => scanConfigTables(client, stack),
  mark,
  unreadable: (references) => unreadableSecrets(secrets, clock, references, local),
});

export const handler = configHandler({ stack, metrics, keep, mark });
