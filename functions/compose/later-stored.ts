/** The stores of responses: loaded by the first call that stores or reads one. */
import type { StoredParts } from '../../shared/adapters/dynamodb/responses/dynamo-stored.ts';
import type { FunctionInvokerParts } from '../../shared/adapters/aws/function-invoker.ts';
import type { StoredPorts } from '../../shared/relay/ports/stored/stored-ports.ts';

type Stores = Omit<StoredPorts, 'startRun'>;
type Method = (...given: unknown[]) => Promise<unknown>;

/** `functionName` undefined: the deployment has no function that runs what nobody waits for. */
interface InvokedParts extends Omit<FunctionInvokerParts, 'functionName'> {
  functionName: string | undefined;
}

export function laterStored(parts: StoredParts, { functionName, ...invoked }: InvokedParts): StoredPorts {
  let loaded: Promise<Stores> | undefined;
  const load = (): Promise<Stores> => {
    loaded ??= import('../../shared/adapters/dynamodb/responses/dynamo-stored.ts').then((file) =>
      file.dynamoStored(parts),
    );
    loaded.catch(() => void (loaded = undefined));
    return loaded;
  };
  /** @param methods all of them */
  const later = <Name extends keyof Stores>(
    name: Name,
    methods: Record<keyof Stores[Name], true>,
  ): Stores[Name] => {
    const method = (of: string): [string, Method] => [
      of,
      async (...given) => ((await load())[name][of as keyof Stores[Name]] as Method)(...given),
    ];
    return Object.fromEntries(Object.keys(methods).map(method)) as unknown as Stores[Name];
  };
  return {
    responses: later('responses', {
      put: true,
      read: true,
      readEach: true,
      heads: true,
      lengths: true,
      remove: true,
      withdraw: true,
    }),
    runs: later('runs', { claim: true, renew: true, finish: true, cancel: true, fail: true }),
    events: later('events', { append: true, after: true, last: true }),
    results: later('results', { put: true, read: true }),
    followers: later('followers', { add: true, last: true }),
    startRun:
      functionName === undefined
        ? undefined
        : async (response) => {
            const { functionInvoker } = await import('../../shared/adapters/aws/function-invoker.ts');
            await functionInvoker({ ...invoked, functionName })(response);
          },
  };
}
