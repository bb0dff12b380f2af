/**
 * Adapters that few calls need, loaded together on first use: limits and budgets of keys, stored responses, idempotency keys, turn states,
 * searches, refusals.
 */
import { createFunctionInvoker } from '../../shared/adapters/aws/function-invoker.ts';
import { createIdempotencyStore } from '../../shared/adapters/dynamodb/idempotency-store.ts';
import { createFreeAttempts } from '../../shared/adapters/dynamodb/free-attempts.ts';
import { createKeyCounters } from '../../shared/adapters/dynamodb/key-budgets.ts';
import { createRefusalCounts } from '../../shared/adapters/dynamodb/refusal-counts.ts';
import { createStoredPorts } from '../../shared/adapters/dynamodb/responses/response-store.ts';
import type { Clock } from '../../shared/relay/ports/host.ts';
import type { StoreDeps } from '../../shared/adapters/dynamodb/table-client.ts';
import { createTurnStateStore } from '../../shared/adapters/dynamodb/turn-states.ts';
import { createSearchProviders, type SearchDeps } from '../../shared/adapters/transport/search-providers.ts';

interface RareDeps extends StoreDeps, SearchDeps {
  clock: Clock;
  region: string;
}

export function createRarePorts({ transport, secrets, region, ...tables }: RareDeps) {
  const { client, clock, stack } = tables;
  return {
    ...createStoredPorts(tables),
    counters: createKeyCounters(client, stack),
    idempotency: createIdempotencyStore(client, clock, stack),
    turnStates: createTurnStateStore(tables),
    refusals: createRefusalCounts(client, stack),
    freeAttempts: createFreeAttempts(client, clock, stack),
    createSearch: createSearchProviders({ transport, secrets }),
    createInvoker: (functionName: string) => createFunctionInvoker({ transport, region, functionName }),
  };
}
