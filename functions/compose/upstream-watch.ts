/** Connects the watch of upstream balances to its adapters. `functions/alerts.ts` loads it with the first hourly pass. */
import { createWatchedChannels } from '../../shared/adapters/dynamodb/alerts/watched-channels.ts';
import type { StoreDeps } from '../../shared/adapters/dynamodb/table-client.ts';
import { createSecretStore } from '../../shared/adapters/secrets/secret-store.ts';
import type { Environment } from '../../shared/adapters/system/environment.ts';
import { createUpstreamWatch } from '../../shared/relay/alerts/upstream-balance.ts';

type WatchPorts = Parameters<typeof createUpstreamWatch>[0];

interface UpstreamWatchDeps
  extends Omit<WatchPorts, 'channels' | 'readSecret'>, Pick<StoreDeps, 'client' | 'stack'> {
  environment: Environment;
}

export function composeUpstreamWatch({ environment, ...deps }: UpstreamWatchDeps): {
  watch(): Promise<void>;
} {
  const { client, clock, stack } = deps;
  const secrets = createSecretStore({ environment, clock, purpose: 'channels' });
  const watch = createUpstreamWatch({
    ...deps,
    readSecret: (reference, host) => secrets.read(reference, host),
    channels: createWatchedChannels(client, stack, environment),
  });
  return { watch };
}
