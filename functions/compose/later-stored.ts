/** The stores of responses: loaded by the first call that stores or reads one. */
import type { StoredParts } from '../../shared/adapters/dynamodb/responses/dynamo-stored.ts';
import type { FunctionInvokerParts } from '../../shared/adapters/aws/function-invoker.ts';
import type { StoredPorts } from '../../shared/relay/ports/stored/stored-ports.ts';
import { later } from './later-adapters.ts';

type Stores = Omit<StoredPorts, 'startRun'>;

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
  return {
    responses: later(async () => (await load()).responses),
    runs: later(async () => (await load()).runs),
    events: later(async () => (await load()).events),
    results: later(async () => (await load()).results),
    followers: later(async () => (await load()).followers),
    startRun:
      functionName === undefined
        ? undefined
        : async (response) => {
            const { functionInvoker } = await import('../../shared/adapters/aws/function-invoker.ts');
            await functionInvoker({ ...invoked, functionName })(response);
          },
  };
}
