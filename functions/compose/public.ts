/**
 * Handles the public read endpoints (models, charge, plans, health, the page), the account endpoints, and
 * unknown paths.
 */
import { dynamoKeyStore } from '../../shared/adapters/dynamodb/key-store.ts';
import { dynamoChannelHealth } from '../../shared/adapters/dynamodb/runtime-source.ts';
import { dynamoConfigSource } from '../../shared/adapters/dynamodb/runtime-source.ts';
import { readEnvironment, type Environment } from '../../shared/adapters/system/environment.ts';
import {
  systemClock as clock,
  systemRandom,
  timeSortedIds,
} from '../../shared/adapters/system/node-ports.ts';
import { jsonLog } from '../../shared/adapters/telemetry/log.ts';
import { accountHandle } from '../../shared/relay/account/account-handle.ts';
import { catalogHandle } from '../../shared/relay/catalog/catalog-handle.ts';
import { withCors, type HostedHandle } from '../../shared/relay/http/http.ts';
import { lazily, tablesOf } from './late-adapters.ts';

export function publicHandle(environment: Environment = readEnvironment()): HostedHandle {
  const { local, originSecrets, stack, version } = environment;
  const log = jsonLog(version);
  const client = tablesOf(environment);
  const config = dynamoConfigSource({ client, clock, random: systemRandom, log, stack });
  const keys = dynamoKeyStore({ client, clock, stack });
  const accounts = lazily(async () => {
    const file = await import('../../shared/adapters/dynamodb/account-reader.ts');
    return file.dynamoAccountReader(client, stack);
  });
  const refusals = lazily(async () => {
    const file = await import('../../shared/adapters/dynamodb/refusal-counts.ts');
    return file.dynamoRefusalCounts(client, stack);
  });
  const account = accountHandle({ config, keys, accounts, refusals, clock, log });
  const health = dynamoChannelHealth({ client, clock, stack, view: config.cooldowns });
  const handle = withCors(catalogHandle({ config, clock, log, version, account, health }), config);
  return { handle, clock, ids: timeSortedIds(clock), log, originSecrets, local };
}
