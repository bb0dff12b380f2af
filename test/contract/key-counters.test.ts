import { documentClient, tablesOn } from '../../shared/adapters/dynamodb/sdk-client.ts';
import { dynamoKeyCounters } from '../../shared/adapters/dynamodb/runtime/dynamo-key-counters.ts';
import { startEmulator } from '../support/emulator.ts';
import { MemoryKeyCounters } from '../support/memory-key-counters.ts';
import { localAccess } from '../unit/adapters/dynamodb/store.ts';
import { keyCountersContract } from './key-counters.ts';

keyCountersContract('in memory', async () => ({
  counters: new MemoryKeyCounters(),
  [Symbol.asyncDispose]: async () => {},
}));

keyCountersContract('on DynamoDB', async () => {
  const emulator = await startEmulator();
  process.env['AWS_ENDPOINT_URL_DYNAMODB'] = emulator.endpoint;
  const client = documentClient(localAccess);
  return {
    counters: dynamoKeyCounters(tablesOn(client), 'relay'),
    async [Symbol.asyncDispose]() {
      client.destroy();
      await emulator.stop();
    },
  };
});
