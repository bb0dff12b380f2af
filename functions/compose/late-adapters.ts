/** Adapters of ports that few calls need: each is loaded by the first call that does. */
import type { TurnStateStoreParts } from '../../shared/adapters/dynamodb/turn-states.ts';
import type { SearchParts } from '../../shared/adapters/transport/search-providers.ts';
import type { TracingParts } from '../../shared/adapters/tracing/traced.ts';
import type { Handle } from '../../shared/relay/http/http.ts';
import type { Clock, SearchProvider } from '../../shared/relay/ports/host.ts';
import type { SearchSettings } from '../../shared/config/settings.ts';
import type {
  IdempotencyStore,
  KeyCounters,
  TurnStateStore,
} from '../../shared/relay/ports/runtime-stores.ts';
import type { RefusalCounts, AccountReader } from '../../shared/relay/ports/money-stores.ts';
import type { StoredParts } from '../../shared/adapters/dynamodb/responses/response-store.ts';
import type { FunctionInvokerParts } from '../../shared/adapters/aws/function-invoker.ts';
import type { StoredPorts } from '../../shared/relay/ports/stored.ts';
import type { AwsAccess } from '../../shared/adapters/system/environment.ts';

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
    const file = await import('../../shared/adapters/dynamodb/turn-states.ts');
    return file.dynamoTurnStateStore(parts);
  });

type TableParts = Pick<TurnStateStoreParts, 'client' | 'stack'>;

export const laterKeyCounters = ({ client, stack }: TableParts): KeyCounters =>
  later(async () => {
    const file = await import('../../shared/adapters/dynamodb/key-budgets.ts');
    return file.dynamoKeyCounters(client, stack);
  });

export const laterRefusalCounts = ({ client, stack }: TableParts): RefusalCounts =>
  later(async () => {
    const file = await import('../../shared/adapters/dynamodb/refusal-counts.ts');
    return file.dynamoRefusalCounts(client, stack);
  });

export const laterIdempotency = ({ client, clock, stack }: TableParts & { clock: Clock }): IdempotencyStore =>
  later(async () => {
    const file = await import('../../shared/adapters/dynamodb/idempotency-store.ts');
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
      const { tracedHandle } = await import('../../shared/adapters/tracing/traced.ts');
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
      const { searchProviders } = await import('../../shared/adapters/transport/search-providers.ts');
      return await searchProviders(parts)(settings).search(...asked);
    },
  });

// The stores of responses: loaded by the first call that stores or reads one.

type Stores = Omit<StoredPorts, 'startRun'>;

/** `functionName` undefined: the deployment has no function that runs what nobody waits for. */
interface InvokedParts extends Omit<FunctionInvokerParts, 'functionName'> {
  functionName: string | undefined;
}

export function laterStored(parts: StoredParts, { functionName, ...invoked }: InvokedParts): StoredPorts {
  let loaded: Promise<Stores> | undefined;
  const load = (): Promise<Stores> => {
    loaded ??= import('../../shared/adapters/dynamodb/responses/response-store.ts').then((file) =>
      file.dynamoStored(parts),
    );
    loaded.catch(() => void (loaded = undefined));
    return loaded;
  };
  return {
    responses: later(async () => (await load()).responses),
    runs: later(async () => (await load()).runs),
    events: later(async () => (await load()).events),
    results: later(async () => (await load()).results),
    startRun:
      functionName === undefined
        ? undefined
        : async (response) => {
            const { functionInvoker } = await import('../../shared/adapters/aws/function-invoker.ts');
            await functionInvoker({ ...invoked, functionName })(response);
          },
  };
}

// The reader of the account endpoints, loaded by the first call that needs it: with the SDK, which nothing else here needs.

export const laterAccounts = ({ aws, stack }: { aws: AwsAccess; stack: string }): AccountReader =>
  later(async () => {
    const { documentClient } = await import('../../shared/adapters/dynamodb/operator-store.ts');
    const file = await import('../../shared/adapters/dynamodb/account-reader.ts');
    return file.dynamoAccountReader(documentClient(aws), stack);
  });
