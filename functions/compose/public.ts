/** Handles public reads (models, charge, plans, health, the page), the account endpoints, and unknown paths. */
import { createRefusalCounts } from '../../shared/adapters/dynamodb/refusal-counts.ts';
import { createKeyStore } from '../../shared/adapters/dynamodb/key-store.ts';
import { createChannelHealth } from '../../shared/adapters/dynamodb/runtime-source.ts';
import type { Environment } from '../../shared/adapters/system/environment.ts';
import { createAccountHandle } from '../../shared/relay/account/account-handle.ts';
import { createCatalogHandle } from '../../shared/relay/catalog/catalog-handle.ts';
import { addCors, type HostedHandle } from '../../shared/relay/http/http.ts';
import { loadOnFirstCall } from './late-adapters.ts';
import { composeRequestDeps } from './request-deps.ts';

export function composePublicHandle(given?: Environment): HostedHandle {
  const { environment, hosted, deps } = composeRequestDeps(given);
  const { client, config, stack } = deps;
  const accounts = loadOnFirstCall(async () => {
    const file = await import('../../shared/adapters/dynamodb/account-reader.ts');
    return file.createAccountReader(client, stack);
  });
  const refusals = createRefusalCounts(client, stack);
  const budgets = loadOnFirstCall(async () => {
    const file = await import('../../shared/adapters/dynamodb/key-budgets.ts');
    return file.createKeyCounters(client, stack);
  });
  const account = createAccountHandle({ ...deps, keys: createKeyStore(deps), accounts, refusals, budgets });
  const health = createChannelHealth({ ...deps, view: config.cooldowns });
  const handle = createCatalogHandle({ ...deps, version: environment.version, account, health });
  return hosted(addCors(handle, config));
}
