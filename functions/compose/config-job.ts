/** Publishes the configuration, and marks rows with mistakes. */
import { backgroundClient, documentsOn, tablesOn } from '../../shared/adapters/dynamodb/sdk-client.ts';
import { dynamoAccountRows } from '../../shared/adapters/dynamodb/ledger/dynamo-account-rows.ts';
import { dynamoConfigTables } from '../../shared/adapters/dynamodb/dynamo-config-tables.ts';
import { dynamoRowMarks } from '../../shared/adapters/dynamodb/dynamo-row-marks.ts';
import { dynamoConfigStore } from '../../shared/adapters/dynamodb/runtime/dynamo-config-store.ts';
import { dynamoLearnedFactsReader } from '../../shared/adapters/dynamodb/runtime/dynamo-learned-facts.ts';
import { cachedSecretStore } from '../../shared/adapters/secrets/cached-secret-store.ts';
import { secretCheck } from '../../shared/adapters/secrets/secret-check.ts';
import { readDefaultLimits, readEnvironment } from '../../shared/adapters/system/environment.ts';
import { systemClock as clock } from '../../shared/adapters/system/system-clock.ts';
import { systemRandom } from '../../shared/adapters/system/time-sorted-ids.ts';
import { configMetrics } from '../../shared/adapters/telemetry/config-metrics.ts';
import { jsonLog } from '../../shared/adapters/telemetry/json-log.ts';
import { configPublisher } from '../../shared/relay/background/config-publisher.ts';
import { rowMarker } from '../../shared/relay/background/row-marker.ts';

export function configJob() {
  const environment = readEnvironment();
  const { aws, envSecrets, local, publicHost, stack, version } = environment;
  const log = jsonLog(version);
  const metrics = configMetrics(stack);
  const client = documentsOn(backgroundClient(aws));
  const secrets = cachedSecretStore({ environment, clock });
  const marks = dynamoRowMarks({ client, stack, log });
  const snapshots = dynamoConfigStore(client, stack, clock);
  const publish = configPublisher({
    clock,
    random: systemRandom,
    log,
    metrics,
    tables: dynamoConfigTables(client, stack),
    snapshots,
    learned: dynamoLearnedFactsReader({ client: tablesOn(client), clock, stack }),
    secretCheck: secretCheck({ secrets, clock, local }),
    marks,
    local,
    envSecrets,
    ownHost: publicHost,
    defaultLimits: readDefaultLimits(),
  });
  const accounts = dynamoAccountRows(client, stack);
  return { stack, publish, markRows: rowMarker({ marks, metrics, snapshots, accounts, local }) };
}
