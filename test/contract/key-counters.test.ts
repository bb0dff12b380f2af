import { dynamoKeyCounters } from '../../shared/adapters/dynamodb/key-budgets.ts';
import { startEmulator } from '../support/emulator.ts';
import { MemoryKeyCounters } from '../support/memory-key-counters.ts';
import { hotClient } from '../unit/adapters/dynamodb/store.ts';
import { keyCountersContract } from './key-counters.ts';

keyCountersContract('in memory', async () => ({
  counters: new MemoryKeyCounters(),
  [Symbol.asyncDispose]: async () => {},
}));

keyCountersContract('on DynamoDB', async () => {
  const emulator = await startEmulator();
  process.env['AWS_ENDPOINT_URL_DYNAMODB'] = emulator.endpoint;
  return {
    counters: dynamoKeyCounters(hotClient(), 'relay'),
    async [Symbol.asyncDispose]() {
      await emulator.stop();
    },
  };
});
