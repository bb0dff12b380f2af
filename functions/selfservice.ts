/** Serves /v1/account/keys, /v1/account/top-ups and /v1/account/codes with buffered responses through a Function URL. */
import { createAutoTopUpStore } from '../shared/adapters/dynamodb/alerts/auto-top-up-store.ts';
import { createCodeStore } from '../shared/adapters/dynamodb/code-store.ts';
import { createKeyCounters } from '../shared/adapters/dynamodb/key-budgets.ts';
import { createKeyStore } from '../shared/adapters/dynamodb/key-store.ts';
import { createManagedKeyStore } from '../shared/adapters/dynamodb/managed-key-store.ts';
import { createBufferedHandler } from '../shared/adapters/entry/lambda-handlers.ts';
import { createSecretStore } from '../shared/adapters/secrets/secret-store.ts';
import { generateSecretKey, nodeHmac, generateHex } from '../shared/adapters/system/node-ports.ts';
import { createHttpsTransport } from '../shared/adapters/transport/https-transport.ts';
import { createManagedKeysHandle } from '../shared/relay/account/managed-keys.ts';
import { addCors } from '../shared/relay/http/http.ts';
import { composeRequestDeps } from './compose/request-deps.ts';

const { environment, hosted, deps } = composeRequestDeps();
const { client, clock, config, random, stack } = deps;
const handle = createManagedKeysHandle({
  ...deps,
  keys: createKeyStore(deps),
  managed: createManagedKeyStore(client, stack),
  counters: createKeyCounters(client, stack),
  topUps: createAutoTopUpStore(client, stack),
  codes: createCodeStore(client, stack),
  secrets: createSecretStore({ environment, clock, purpose: 'payments' }),
  transport: createHttpsTransport(environment),
  hmac: nodeHmac,
  random: { ...random, secretKey: generateSecretKey, hex: generateHex },
});

export const handler = createBufferedHandler(hosted(addCors(handle, config)));
