/** Publishes the configuration, and marks rows with mistakes. */
import { backgroundTimes, tableClient } from '../shared/adapters/dynamodb/table-client.ts';
import { dynamoAccountRows } from '../shared/adapters/dynamodb/account-reader.ts';
import { dynamoConfigTables, dynamoRowMarks } from '../shared/adapters/dynamodb/row-tables.ts';
import { dynamoConfigStore } from '../shared/adapters/dynamodb/config-store.ts';
import { dynamoLearnedFactsReader } from '../shared/adapters/dynamodb/runtime-source.ts';
import { cachedSecretStore, secretCheck } from '../shared/adapters/secrets/secret-store.ts';
import { readDefaultLimits, readEnvironment } from '../shared/adapters/system/environment.ts';
import { systemClock as clock, systemRandom } from '../shared/adapters/system/node-ports.ts';
import { configMetrics, jsonLog } from '../shared/adapters/telemetry/log.ts';
import { configPublisher, rowMarker } from '../shared/relay/jobs/config-publisher.ts';
import { configStreamHandler } from '../shared/adapters/entry/table-streams.ts';

function configJob() {
  const environment = readEnvironment();
  const { aws, envSecrets, local, publicHost, stack, version } = environment;
  const log = jsonLog(version);
  const metrics = configMetrics(stack);
  const client = tableClient(aws, backgroundTimes);
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
    learned: dynamoLearnedFactsReader({ client, clock, stack }),
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

// Publishes the configuration and marks rows with mistakes: on changes to the operators' tables, and on a
// schedule.

export const handler = configStreamHandler(configJob());
