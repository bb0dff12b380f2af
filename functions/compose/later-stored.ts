/** The stores of responses: loaded by the first call that stores or reads one. */
import type { StoredParts } from '../../shared/adapters/dynamodb/responses/dynamo-stored.ts';
import type { FunctionInvokerParts } from '../../shared/adapters/aws/function-invoker.ts';
import type { StoredPorts } from '../../shared/relay/ports/stored/stored-ports.ts';

export function laterStored(parts: StoredParts, invoked: FunctionInvokerParts): StoredPorts {
  let loaded: Promise<Omit<StoredPorts, 'startRun'>> | undefined;
  const load = (): Promise<Omit<StoredPorts, 'startRun'>> => {
    loaded ??= import('../../shared/adapters/dynamodb/responses/dynamo-stored.ts').then((file) =>
      file.dynamoStored(parts),
    );
    loaded.catch(() => void (loaded = undefined));
    return loaded;
  };
  return {
    responses: {
      put: async (...given) => (await load()).responses.put(...given),
      read: async (...given) => (await load()).responses.read(...given),
      heads: async (...given) => (await load()).responses.heads(...given),
      remove: async (...given) => (await load()).responses.remove(...given),
    },
    runs: {
      claim: async (...given) => (await load()).runs.claim(...given),
      renew: async (...given) => (await load()).runs.renew(...given),
      finish: async (...given) => (await load()).runs.finish(...given),
      cancel: async (...given) => (await load()).runs.cancel(...given),
      fail: async (...given) => (await load()).runs.fail(...given),
    },
    events: {
      append: async (...given) => (await load()).events.append(...given),
      after: async (...given) => (await load()).events.after(...given),
    },
    results: {
      put: async (...given) => (await load()).results.put(...given),
      read: async (...given) => (await load()).results.read(...given),
    },
    async startRun(response) {
      const { functionInvoker } = await import('../../shared/adapters/aws/function-invoker.ts');
      await functionInvoker(invoked)(response);
    },
  };
}
