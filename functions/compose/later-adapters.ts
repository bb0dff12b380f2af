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

/**
 * A port whose adapter is loaded by the first call of it; where that fails, the next call tries again. It has no list of
 * methods, and so none that leaves out an argument.
 */
export function later<Port extends object>(load: () => Promise<Port>): Port {
  let loaded: Promise<Port> | undefined;
  const adapter = (): Promise<Port> =>
    (loaded ??= load().catch((error: unknown) => {
      loaded = undefined;
      throw error;
    }));
  const method =
    (name: string | symbol) =>
    async (...given: unknown[]): Promise<unknown> => {
      const port = await adapter();
      return Reflect.apply(Reflect.get(port, name) as () => unknown, port, given);
    };
  // Whoever awaits the port must not take it for a promise.
  return new Proxy({} as Port, { get: (_, name) => (name === 'then' ? undefined : method(name)) });
}

export const laterTurnStates = (parts: TurnStateStoreParts): TurnStateStore =>
  later(async () => {
    const file = await import('../../shared/adapters/dynamodb/runtime/dynamo-turn-state-store.ts');
    return file.dynamoTurnStateStore(parts);
  });

type TableParts = Pick<TurnStateStoreParts, 'client' | 'stack'>;

export const laterKeyCounters = ({ client, stack }: TableParts): KeyCounters =>
  later(async () => {
    const file = await import('../../shared/adapters/dynamodb/runtime/dynamo-key-counters.ts');
    return file.dynamoKeyCounters(client, stack);
  });

export const laterRefusalCounts = ({ client, stack }: TableParts): RefusalCounts =>
  later(async () => {
    const file = await import('../../shared/adapters/dynamodb/ledger/dynamo-refusal-counts.ts');
    return file.dynamoRefusalCounts(client, stack);
  });

export const laterIdempotency = ({ client, clock, stack }: TableParts & { clock: Clock }): IdempotencyStore =>
  later(async () => {
    const file = await import('../../shared/adapters/dynamodb/dynamo-idempotency-store.ts');
    return file.dynamoIdempotencyStore(client, clock, stack);
  });

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
