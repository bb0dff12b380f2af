/** Streams of the tables that operators edit, and a schedule: publishes the configuration, marks rows with mistakes. */
import { systemClock } from '../shared/adapters/clock.ts';
import { configHandler } from '../shared/adapters/config-events.ts';
import { configKeeper } from '../shared/adapters/config-keeper.ts';
import { embeddedConfigMetrics } from '../shared/adapters/config-metrics.ts';
import { unreadableSecrets } from '../shared/adapters/config-secrets.ts';
import { scanConfigTables } from '../shared/adapters/config-tables.ts';
import { documentsOn } from '../shared/adapters/dynamo.ts';
import { readEnvironment } from '../shared/adapters/environment.ts';
import { jsonLog } from '../shared/adapters/log.ts';
import { systemRandom } from '../shared/adapters/random.ts';
import { secretStore } from '../shared/adapters/secret-store.ts';
import { dynamoSnapshotStore } from '../shared/adapters/snapshot-store.ts';
import { streamClient } from '../shared/adapters/stream-client.ts';
import { writeMarks, type JudgedRow } from '../shared/adapters/verdict-marks.ts';

const environment = readEnvironment();
const { stack, version, aws, local } = environment;
const clock = systemClock;
const client = documentsOn(streamClient(aws));
const metrics = embeddedConfigMetrics(stack);
const secrets = secretStore({ environment, clock });
const mark = (rows: JudgedRow[]): Promise<void> => writeMarks(client, stack, rows);

const keep = configKeeper({
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
