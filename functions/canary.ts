/** Calls the relay through its public address on a schedule, and counts whether it was answered. */
import { createEventHandler } from '../shared/adapters/entry/event-handler.ts';
import { createSecretStore } from '../shared/adapters/secrets/secret-store.ts';
import { readCanary, readEnvironment } from '../shared/adapters/system/environment.ts';
import { systemClock as clock } from '../shared/adapters/system/node-ports.ts';
import { createBackgroundMetrics, createJsonLog } from '../shared/adapters/telemetry/log.ts';
import { createHttpsTransport } from '../shared/adapters/transport/https-transport.ts';
import { createRequestSigner } from '../shared/adapters/aws/aws-signature.ts';
import { canary } from '../shared/relay/jobs/canary.ts';

const requestMsMax = 25_000;

export function createCanaryJob() {
  const environment = readEnvironment();
  const { aws, local, stack, version } = environment;
  const log = createJsonLog(version);
  const metrics = createBackgroundMetrics(stack);
  const call = canary(
    {
      transport: createHttpsTransport({ local, sign: createRequestSigner({ aws, clock }) }),
      secrets: createSecretStore({ environment, clock, purpose: 'canary' }),
      clock,
      deadline: () => AbortSignal.timeout(requestMsMax),
    },
    readCanary(),
  );
  return createEventHandler(log, {
    async schedule() {
      const result = await call();
      metrics.countCanaryCall(result);
      if (!result.ok) log.event('canary_failed', { reason: result.reason });
    },
  });
}

export const handler = createCanaryJob();
