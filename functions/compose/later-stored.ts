/** The stores of responses: loaded by the first call that stores or reads one. */
import type { StoredParts } from '../../shared/adapters/dynamodb/responses/dynamo-stored.ts';
import type { FunctionInvokerParts } from '../../shared/adapters/aws/function-invoker.ts';
import type { StoredPorts } from '../../shared/relay/ports/stored/stored-ports.ts';

type Stores = Omit<StoredPorts, 'startRun'>;
type Method = (...given: unknown[]) => Promise<unknown>;

export function laterStored(parts: StoredParts, invoked: FunctionInvokerParts): StoredPorts {
  let loaded: Promise<Stores> | undefined;
  const load = (): Promise<Stores> => {
    loaded ??= import('../../shared/adapters/dynamodb/responses/dynamo-stored.ts').then((file) =>
      file.dynamoStored(parts),
    );
    loaded.catch(() => void (loaded = undefined));
    return loaded;
  };
  const later = <Name extends keyof Stores>(name: Name, methods: (keyof Stores[Name])[]): Stores[Name] => {
    const method = (of: keyof Stores[Name]): [typeof of, Method] => [
      of,
      async (...given) => ((await load())[name][of] as Method)(...given),
    ];
    return Object.fromEntries(methods.map(method)) as unknown as Stores[Name];
  };
  return {
    responses: later('responses', ['put', 'read', 'heads', 'remove']),
    runs: later('runs', ['claim', 'renew', 'finish', 'cancel', 'fail']),
    events: later('events', ['append', 'after']),
    results: later('results', ['put', 'read']),
    async startRun(response) {
      const { functionInvoker } = await import('../../shared/adapters/aws/function-invoker.ts');
      await functionInvoker(invoked)(response);
    },
  };
}
