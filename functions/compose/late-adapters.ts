/** Adapters that few calls need: each is loaded by the first call that does. */
import {
  createTableClient,
  type ClientSettings,
  type TableClient,
} from '../../shared/adapters/dynamodb/table-client.ts';
import type { Environment } from '../../shared/adapters/system/environment.ts';
import type { TracingDeps } from '../../shared/adapters/tracing/traced.ts';
import type { Handle } from '../../shared/relay/http/http.ts';

/**
 * A port whose adapter is loaded by the first call of it; where that fails, the next call tries again. It has no list of
 * methods, and so none that leaves out an argument.
 */
export function loadOnFirstCall<Port extends object>(load: () => Promise<Port>): Port {
  let loading: Promise<Port> | undefined;
  const loadAdapter = (): Promise<Port> =>
    (loading ??= load().catch((error: unknown) => {
      loading = undefined;
      throw error;
    }));
  const forwardCall =
    (name: string | symbol) =>
    async (...args: unknown[]): Promise<unknown> => {
      const port = await loadAdapter();
      return Reflect.apply(Reflect.get(port, name) as () => unknown, port, args);
    };
  // Whoever awaits the port must not take it for a promise.
  return new Proxy({} as Port, { get: (_, name) => (name === 'then' ? undefined : forwardCall(name)) });
}

/** The client of the tables. AWS's own is loaded by its first call. */
export const tablesOf = (
  { aws, awsClient }: Pick<Environment, 'aws' | 'awsClient'>,
  settings?: ClientSettings,
): TableClient =>
  awsClient === 'sdk'
    ? loadOnFirstCall(async () => {
        const { createSdkTableClient: sdkTableClient } =
          await import('../../shared/adapters/dynamodb/sdk-client.ts');
        return sdkTableClient(aws, settings);
      })
    : createTableClient(aws, settings);

/** The first call composes the handle, around ports that note what they do. */
export function composeTracedHandle(deps: TracingDeps): Handle {
  const traced = loadOnFirstCall(async () => {
    const { traceHandle: tracedHandle } = await import('../../shared/adapters/tracing/traced.ts');
    return { handle: tracedHandle(deps) };
  });
  return (request) => traced.handle(request);
}
