/** Serves POST /hooks/payments/stripe with buffered responses through a Function URL. */
import { dynamoPaymentStore } from '../shared/adapters/dynamodb/payment-store.ts';
import { dynamoConfigSource } from '../shared/adapters/dynamodb/runtime-source.ts';
import { bufferedHandler } from '../shared/adapters/entry/lambda-handlers.ts';
import { cachedSecretStore } from '../shared/adapters/secrets/secret-store.ts';
import { readEnvironment } from '../shared/adapters/system/environment.ts';
import {
  nodeHmac,
  systemClock as clock,
  systemRandom,
  timeSortedIds,
} from '../shared/adapters/system/node-ports.ts';
import { backgroundMetrics, jsonLog } from '../shared/adapters/telemetry/log.ts';
import { paymentsHandle } from '../shared/relay/payments/payments-handle.ts';
import { tablesOf } from './compose/late-adapters.ts';

const environment = readEnvironment();
const { local, originSecrets, stack, version } = environment;
const log = jsonLog(version);
const client = tablesOf(environment);
const handle = paymentsHandle({
  config: dynamoConfigSource({ client, clock, random: systemRandom, log, stack }),
  secrets: cachedSecretStore({ environment, clock }),
  payments: dynamoPaymentStore(client, stack),
  hmac: nodeHmac,
  clock,
  random: systemRandom,
  log,
  metrics: backgroundMetrics(stack),
});

export const handler = bufferedHandler({
  handle,
  clock,
  ids: timeSortedIds(clock),
  log,
  originSecrets,
  local,
});
