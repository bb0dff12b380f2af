/** Publishes the configuration and marks invalid rows, after edits and on a schedule. */
import { createAccountRows } from '../shared/adapters/dynamodb/account-reader.ts';
import { createConfigTables, createRowMarks } from '../shared/adapters/dynamodb/row-tables.ts';
import { createSnapshotStore } from '../shared/adapters/dynamodb/config-store.ts';
import { createLearnedFactsReader } from '../shared/adapters/dynamodb/runtime-source.ts';
import { createSecretStore, createSecretCheck } from '../shared/adapters/secrets/secret-store.ts';
import { readDefaultLimits, readDeployedSecrets } from '../shared/adapters/system/environment.ts';
import { createConfigMetrics } from '../shared/adapters/telemetry/log.ts';
import { createConfigPublisher, createRowMarker } from '../shared/relay/jobs/config-publisher.ts';
import { createEventHandler } from '../shared/adapters/entry/event-handler.ts';
import { createConfigStreamHandler } from '../shared/adapters/entry/table-streams.ts';
import { composeJobDeps } from './compose/job-deps.ts';

const { environment, client, clock, random, log, stack } = composeJobDeps();
const { envSecrets, local, publicHost } = environment;
const metrics = createConfigMetrics(stack);
const marks = createRowMarks({ client, stack, log });
const snapshots = createSnapshotStore(client, stack, clock);
const accounts = createAccountRows(client, stack);
const publish = createConfigPublisher({
  clock,
  random,
  log,
  metrics,
  tables: createConfigTables(client, stack),
  snapshots,
  learned: createLearnedFactsReader({ client, clock, stack }),
  secretCheck: createSecretCheck({
    secrets: createSecretStore({ environment, clock, purpose: 'channels' }),
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

export const handler = createEventHandler(log, {
  records: createConfigStreamHandler({
    stack,
    publish,
    markRows: createRowMarker({ marks, metrics, snapshots, accounts, local }),
  }),
  schedule: publish,
});
