/** Serves /v1/account/keys and /v1/account/top-ups with buffered responses through a Function URL. */
import { dynamoKeyCounters } from '../shared/adapters/dynamodb/key-budgets.ts';
import { dynamoKeyStore } from '../shared/adapters/dynamodb/key-store.ts';
import { dynamoManagedKeys } from '../shared/adapters/dynamodb/managed-key-store.ts';
import { bufferedHandler } from '../shared/adapters/entry/lambda-handlers.ts';
import { cachedSecretStore } from '../shared/adapters/secrets/secret-store.ts';
import { newSecretKey, nodeHmac, randomHex } from '../shared/adapters/system/node-ports.ts';
import { httpsUpstreamTransport } from '../shared/adapters/transport/https-transport.ts';
import { createManagedKeysHandle } from '../shared/relay/account/managed-keys.ts';
import { addCors } from '../shared/relay/http/http.ts';
import { servedParts } from './compose/served-parts.ts';

const { environment, hosted, parts } = servedParts();
const { client, clock, config, random, stack } = parts;
const handle = createManagedKeysHandle({
  ...parts,
  keys: dynamoKeyStore(parts),
  managed: dynamoManagedKeys(client, stack),
  counters: dynamoKeyCounters(client, stack),
  secrets: cachedSecretStore({ environment, clock, purpose: 'payments' }),
  transport: httpsUpstreamTransport(environment),
  hmac: nodeHmac,
  random: { ...random, secretKey: newSecretKey, hex: randomHex },
});

export const handler = bufferedHandler(hosted(addCors(handle, config)));
