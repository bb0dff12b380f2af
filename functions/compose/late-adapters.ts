/** Adapters that few calls need: each is loaded by the first call that does. */
import {
  tableClient,
  type ClientSettings,
  type TableClient,
} from '../../shared/adapters/dynamodb/table-client.ts';
import type { Environment } from '../../shared/adapters/system/environment.ts';
import type { TracingParts } from '../../shared/adapters/tracing/traced.ts';
import type { Handle } from '../../shared/relay/http/http.ts';

/**
 * A port whose adapter is loaded by the first call of it; where that fails, the next call tries again. It has no list of
 * methods, and so none that leaves out an argument.
 */
export function lazily<Port extends object>(load: () => Promise<Port>): Port {
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

/** The client of the tables. AWS's own is loaded by its first call. */
export const tablesOf = (
  { aws, awsClient }: Pick<Environment, 'aws' | 'awsClient'>,
  settings?: ClientSettings,
): TableClient =>
  awsClient === 'sdk'
    ? lazily(async () => {
        const { sdkTableClient } = await import('../../shared/adapters/dynamodb/sdk-client.ts');
        return sdkTableClient(aws, settings);
      })
    : tableClient(aws, settings);

/** The first call composes the handle, around ports that note what they do. */
export function lateTracing(parts: TracingParts): Handle {
  const traced = lazily(async () => {
    const { tracedHandle } = await import('../../shared/adapters/tracing/traced.ts');
    return { handle: tracedHandle(parts) };
  });
  return (request) => traced.handle(request);
}
