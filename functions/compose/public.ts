/**
 * Handles the public read endpoints (models, charge, plans, health, the page), the account endpoints, and
 * unknown paths.
 */
import { dynamoRefusalCounts } from '../../shared/adapters/dynamodb/refusal-counts.ts';
import { dynamoKeyStore } from '../../shared/adapters/dynamodb/key-store.ts';
import { dynamoChannelHealth } from '../../shared/adapters/dynamodb/runtime-source.ts';
import type { Environment } from '../../shared/adapters/system/environment.ts';
import { createAccountHandle } from '../../shared/relay/account/account-handle.ts';
import { createCatalogHandle } from '../../shared/relay/catalog/catalog-handle.ts';
import { addCors, type HostedHandle } from '../../shared/relay/http/http.ts';
import { lazily } from './late-adapters.ts';
import { servedParts } from './served-parts.ts';

export function publicHandle(given?: Environment): HostedHandle {
  const { environment, hosted, parts } = servedParts(given);
  const { client, config, stack } = parts;
  const accounts = lazily(async () => {
    const file = await import('../../shared/adapters/dynamodb/account-reader.ts');
    return file.dynamoAccountReader(client, stack);
  });
  const refusals = dynamoRefusalCounts(client, stack);
  const account = createAccountHandle({ ...parts, keys: dynamoKeyStore(parts), accounts, refusals });
  const health = dynamoChannelHealth({ ...parts, view: config.cooldowns });
  const handle = createCatalogHandle({ ...parts, version: environment.version, account, health });
  return hosted(addCors(handle, config));
}
