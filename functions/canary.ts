/** Makes the scheduled call, where the deployment has one, through the public address, and counts whether it was answered. */
import { eventHandler } from '../shared/adapters/entry/event-handler.ts';
import { cachedSecretStore } from '../shared/adapters/secrets/secret-store.ts';
import { readCanary, readEnvironment } from '../shared/adapters/system/environment.ts';
import { systemClock as clock } from '../shared/adapters/system/node-ports.ts';
import { backgroundMetrics, jsonLog } from '../shared/adapters/telemetry/log.ts';
import { httpsUpstreamTransport } from '../shared/adapters/transport/https-transport.ts';
import { requestSigner } from '../shared/adapters/aws/aws-signature.ts';
import { canary } from '../shared/relay/jobs/canary.ts';

const requestMsMax = 25_000;

export function canaryJob() {
  const environment = readEnvironment();
  const { aws, local, stack, version } = environment;
  const log = jsonLog(version);
  const metrics = backgroundMetrics(stack);
  const call = canary(
    {
      transport: httpsUpstreamTransport({ local, sign: requestSigner({ aws, clock }) }),
      secrets: cachedSecretStore({ environment, clock, purpose: 'canary' }),
      clock,
      deadline: () => AbortSignal.timeout(requestMsMax),
    },
    readCanary(),
  );
  return eventHandler(log, {
    async schedule() {
      const result = await call();
      metrics.called(result);
      if (!result.ok) log.event('canary_failed', { reason: result.reason });
    },
  });
}

export const handler = canaryJob();
