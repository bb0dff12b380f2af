/** Publishes the configuration and marks rows with mistakes: on changes to the operators' tables, and on a schedule. */
import { dynamoAccountRows } from '../shared/adapters/dynamodb/account-reader.ts';
import { dynamoConfigTables, dynamoRowMarks } from '../shared/adapters/dynamodb/row-tables.ts';
import { dynamoConfigStore } from '../shared/adapters/dynamodb/config-store.ts';
import { dynamoLearnedFactsReader } from '../shared/adapters/dynamodb/runtime-source.ts';
import { cachedSecretStore, secretCheck } from '../shared/adapters/secrets/secret-store.ts';
import { readDefaultLimits, readDeployedSecrets } from '../shared/adapters/system/environment.ts';
import { configMetrics } from '../shared/adapters/telemetry/log.ts';
import { createConfigPublisher, createRowMarker } from '../shared/relay/jobs/config-publisher.ts';
import { eventHandler } from '../shared/adapters/entry/event-handler.ts';
import { configStreamHandler } from '../shared/adapters/entry/table-streams.ts';
import { jobParts } from './compose/job-parts.ts';

const { environment, client, clock, random, log, stack } = jobParts();
const { envSecrets, local, publicHost } = environment;
const metrics = configMetrics(stack);
const marks = dynamoRowMarks({ client, stack, log });
const snapshots = dynamoConfigStore(client, stack, clock);
const accounts = dynamoAccountRows(client, stack);
const publish = createConfigPublisher({
  clock,
  random,
  log,
  metrics,
  tables: dynamoConfigTables(client, stack),
  snapshots,
  learned: dynamoLearnedFactsReader({ client, clock, stack }),
  secretCheck: secretCheck({
    secrets: cachedSecretStore({ environment, clock, purpose: 'channels' }),
    clock,
    local,
  }),
  marks,
  local,
  envSecrets,
  owners: readDeployedSecrets(),
  ownHost: publicHost,
  defaultLimits: readDefaultLimits(),
});

export const handler = eventHandler(log, {
  records: configStreamHandler({
    stack,
    publish,
    markRows: createRowMarker({ marks, metrics, snapshots, accounts, local }),
  }),
  schedule: publish,
});
