/** Adapters of ports that few calls need: each is loaded by the first call that does. */
import type { TurnStateStoreParts } from '../../shared/adapters/dynamodb/runtime/dynamo-turn-state-store.ts';
import type { SearchParts } from '../../shared/adapters/search/search-providers.ts';
import type { TracingParts } from '../../shared/adapters/tracing/traced-handle.ts';
import type { Handle } from '../../shared/relay/http/http.ts';
import type { Clock } from '../../shared/relay/ports/clock.ts';
import type { SearchSettings } from '../../shared/config/settings/settings.ts';
import type { SearchProvider } from '../../shared/relay/ports/search-provider.ts';
import type { IdempotencyStore } from '../../shared/relay/ports/stores/idempotency-store.ts';
import type { KeyCounters } from '../../shared/relay/ports/stores/key-counters.ts';
import type { RefusalCounts } from '../../shared/relay/ports/stores/refusal-counts.ts';
import type { TurnStateStore } from '../../shared/relay/ports/stores/turn-state-store.ts';

export function laterTurnStates(parts: TurnStateStoreParts): TurnStateStore {
  const load = async (): Promise<TurnStateStore> => {
    const file = await import('../../shared/adapters/dynamodb/runtime/dynamo-turn-state-store.ts');
    return file.dynamoTurnStateStore(parts);
  };
  return {
    put: async (...turn) => (await load()).put(...turn),
    read: async (...turns) => (await load()).read(...turns),
  };
}

export function laterKeyCounters({
  client,
  stack,
}: Pick<TurnStateStoreParts, 'client' | 'stack'>): KeyCounters {
  const load = async (): Promise<KeyCounters> => {
    const file = await import('../../shared/adapters/dynamodb/runtime/dynamo-key-counters.ts');
    return file.dynamoKeyCounters(client, stack);
  };
  return {
    countCall: async (...call) => (await load()).countCall(...call),
    hold: async (...held) => (await load()).hold(...held),
    change: async (...changed) => (await load()).change(...changed),
  };
}

export function laterRefusalCounts({
  client,
  stack,
}: Pick<TurnStateStoreParts, 'client' | 'stack'>): RefusalCounts {
  const load = async (): Promise<RefusalCounts> => {
    const file = await import('../../shared/adapters/dynamodb/ledger/dynamo-refusal-counts.ts');
    return file.dynamoRefusalCounts(client, stack);
  };
  return {
    add: async (hour) => (await load()).add(hour),
    since: async (...from) => (await load()).since(...from),
  };
}

export function laterIdempotency({
  client,
  clock,
  stack,
}: TurnStateStoreParts & { clock: Clock }): IdempotencyStore {
  const load = async (): Promise<IdempotencyStore> => {
    const file = await import('../../shared/adapters/dynamodb/dynamo-idempotency-store.ts');
    return file.dynamoIdempotencyStore(client, clock, stack);
  };
  return {
    claim: async (claim) => (await load()).claim(claim),
    finish: async (...ended) => (await load()).finish(...ended),
  };
}

/**
 * The first call composes the handle, around ports that note what they do. Where that fails the call is answered without
 * a trace, and the next one tries again.
 */
export function laterTracing(parts: TracingParts): Handle {
  const { ports, handleOf } = parts;
  let traced: Promise<Handle> | undefined;
  let untraced: Handle | undefined;
  const load = async (requestId: string): Promise<Handle> => {
    try {
      const { tracedHandle } = await import('../../shared/adapters/tracing/traced-handle.ts');
      return tracedHandle(parts);
    } catch (error) {
      traced = undefined;
      ports.log.fault(requestId, error);
      return (untraced ??= handleOf(ports));
    }
  };
  return async (request) => (await (traced ??= load(request.id)))(request);
}

export const laterSearch =
  (parts: SearchParts) =>
  (settings: SearchSettings): SearchProvider => ({
    async search(...asked) {
      const { searchProviders } = await import('../../shared/adapters/search/search-providers.ts');
      return await searchProviders(parts)(settings).search(...asked);
    },
  });
