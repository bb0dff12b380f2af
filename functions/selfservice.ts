/** Serves /v1/account/keys and /v1/account/top-ups with buffered responses through a Function URL. */
import { dynamoKeyCounters } from '../shared/adapters/dynamodb/key-budgets.ts';
import { dynamoKeyStore } from '../shared/adapters/dynamodb/key-store.ts';
import { dynamoManagedKeys } from '../shared/adapters/dynamodb/managed-key-store.ts';
import { dynamoConfigSource } from '../shared/adapters/dynamodb/runtime-source.ts';
import { cachedSecretStore } from '../shared/adapters/secrets/secret-store.ts';
import { readEnvironment } from '../shared/adapters/system/environment.ts';
import {
  newSecretKey,
  nodeHmac,
  randomHex,
  systemClock as clock,
  systemRandom,
  timeSortedIds,
} from '../shared/adapters/system/node-ports.ts';
import { bufferedHandler } from '../shared/adapters/entry/lambda-handlers.ts';
import { jsonLog } from '../shared/adapters/telemetry/log.ts';
import { httpsUpstreamTransport } from '../shared/adapters/transport/https-transport.ts';
import { managedKeysHandle } from '../shared/relay/account/managed-keys.ts';
import { withCors } from '../shared/relay/http/http.ts';
import { tablesOf } from './compose/late-adapters.ts';

const environment = readEnvironment();
const { local, originSecrets, stack, version } = environment;
const log = jsonLog(version);
const client = tablesOf(environment);
const config = dynamoConfigSource({ client, clock, random: systemRandom, log, stack });
const handle = managedKeysHandle({
  config,
  keys: dynamoKeyStore({ client, clock, stack }),
  managed: dynamoManagedKeys(client, stack),
  counters: dynamoKeyCounters(client, stack),
  secrets: cachedSecretStore({ environment, clock }),
  transport: httpsUpstreamTransport({ local }),
  hmac: nodeHmac,
  random: { ...systemRandom, secretKey: newSecretKey, hex: randomHex },
  clock,
  log,
});

export const handler = bufferedHandler({
  handle: withCors(handle, config),
  clock,
  ids: timeSortedIds(clock),
  log,
  originSecrets,
  local,
});
