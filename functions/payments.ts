/** Serves POST /hooks/payments/stripe with buffered responses through a Function URL. */
import { dynamoPaymentStore } from '../shared/adapters/dynamodb/payment-store.ts';
import { bufferedHandler } from '../shared/adapters/entry/lambda-handlers.ts';
import { cachedSecretStore } from '../shared/adapters/secrets/secret-store.ts';
import { nodeHmac } from '../shared/adapters/system/node-ports.ts';
import { backgroundMetrics } from '../shared/adapters/telemetry/log.ts';
import { createPaymentsHandle } from '../shared/relay/payments/payments-handle.ts';
import { servedParts } from './compose/served-parts.ts';

const { environment, hosted, parts } = servedParts();
const { client, clock, stack } = parts;
const handle = createPaymentsHandle({
  ...parts,
  secrets: cachedSecretStore({ environment, clock, purpose: 'payments' }),
  payments: dynamoPaymentStore(client, stack),
  hmac: nodeHmac,
  metrics: backgroundMetrics(stack),
});

export const handler = bufferedHandler(hosted(handle));
