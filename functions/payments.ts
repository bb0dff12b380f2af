/** Serves POST /hooks/payments/stripe with buffered responses through a Function URL. */
import { createAutoTopUpStore } from '../shared/adapters/dynamodb/alerts/auto-top-up-store.ts';
import { createPaymentStore } from '../shared/adapters/dynamodb/payment-store.ts';
import { createBufferedHandler } from '../shared/adapters/entry/lambda-handlers.ts';
import { createSecretStore } from '../shared/adapters/secrets/secret-store.ts';
import { nodeHmac } from '../shared/adapters/system/node-ports.ts';
import { createBackgroundMetrics } from '../shared/adapters/telemetry/log.ts';
import { createPaymentsHandle } from '../shared/relay/payments/payments-handle.ts';
import { composeRequestDeps } from './compose/request-deps.ts';

const { environment, hosted, deps } = composeRequestDeps();
const { client, clock, stack } = deps;
const handle = createPaymentsHandle({
  ...deps,
  secrets: createSecretStore({ environment, clock, purpose: 'payments' }),
  payments: createPaymentStore(client, stack),
  topUps: createAutoTopUpStore(client, stack),
  hmac: nodeHmac,
  metrics: createBackgroundMetrics(stack),
});

export const handler = createBufferedHandler(hosted(handle));
