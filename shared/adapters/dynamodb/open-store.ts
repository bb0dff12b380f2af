/**
 * Opens a target's tables with the SDK's search for region and credentials. The only store file with the SDK, so functions
 * must never import it.
 */
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { TableTraffic, Target } from '../../operate/operator-ports.ts';
import { createCredentialSource } from '../aws/credentials.ts';
import type { AwsOverrides } from '../system/environment.ts';
import type { Store } from './operator-store.ts';
import { createTableClient, type TableClient } from './table-client.ts';

const times = { connectMsMax: 3_000, tryMsMax: 15_000 };
const localAccess = { region: 'us-east-1', credentials: { accessKeyId: 'local', secretAccessKey: 'local' } };

export async function openStore(target: Target, overrides: AwsOverrides = {}): Promise<Store> {
  const { config } = new DynamoDBClient({ ...overrides, ...(target.local && localAccess) });
  const readAccess = async () => ({ region: await config.region(), credentials: await config.credentials() });
  let traffic: TableTraffic = { requests: 0, bytes: 0 };
  const meter = {
    request: () => void (traffic = { ...traffic, requests: traffic.requests + 1 }),
    reply: (bytes: number) => void (traffic = { ...traffic, bytes: traffic.bytes + bytes }),
  };
  let client: TableClient | undefined;
  const tables: TableClient = {
    async call(...given) {
      // Resolved before each call, so that a configuration error is named.
      const { region } = await readAccess();
      client ??= createTableClient(
        { region, credentials: createCredentialSource((options) => config.credentials(options)) },
        { ...times, attempts: target.local ? 1 : 4, endpoint: target.endpoint, meter },
      );
      return client.call(...given);
    },
  };
  const region = await config.region().catch(() => undefined);
  return { target, tables, region, aws: readAccess, traffic: () => traffic };
}
