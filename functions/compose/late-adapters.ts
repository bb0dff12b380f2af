/** Adapters that few calls need, loaded by the first call that does. */
import {
  createTableClient,
  type ClientSettings,
  type TableClient,
} from '../../shared/adapters/dynamodb/table-client.ts';
import type { Environment } from '../../shared/adapters/system/environment.ts';
import type { TracingDeps } from '../../shared/adapters/tracing/call-tracer.ts';
import type { Handle } from '../../shared/relay/http/http.ts';

/** A port whose adapter is loaded by its first call. After a failed load the next call tries again. */
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
  // A port that is awaited must not look like a promise.
  return new Proxy({} as Port, { get: (_, name) => (name === 'then' ? undefined : forwardCall(name)) });
}

/** AWS's own client is loaded by its first call. */
export const connectTables = (
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

/** The first call loads tracing and composes the handle around ports that record spans. */
export function composeTracedHandle(deps: TracingDeps): Handle {
  const traced = loadOnFirstCall(async () => {
    const { traceHandle } = await import('../../shared/adapters/tracing/call-tracer.ts');
    return { handle: traceHandle(deps) };
  });
  return (request) => traced.handle(request);
}
