/** The setting `alerts` of the newest configuration, for background jobs. */
import { dynamoConfigStore } from '../../shared/adapters/dynamodb/runtime/dynamo-config-store.ts';
import { systemClock } from '../../shared/adapters/system/system-clock.ts';
import { defaultAlerts, type AlertSettings } from '../../shared/config/settings/settings.ts';

type Client = Parameters<typeof dynamoConfigStore>[0];

export function alertSettings(client: Client, stack: string): () => Promise<AlertSettings> {
  const snapshots = dynamoConfigStore(client, stack, systemClock);
  return async () => {
    const newest = await snapshots.newest();
    const settings = newest && (await snapshots.snapshot(newest)).settings;
    return settings?.alerts ?? defaultAlerts;
  };
}
