import { createKeyCounters } from '../../shared/adapters/dynamodb/key-budgets.ts';
import { startEmulator } from '../support/emulator.ts';
import { MemoryKeyCounters } from '../support/memory-key-counters.ts';
import { hotClient } from '../unit/adapters/dynamodb/store.ts';
import { keyCountersContract } from './key-counters.ts';

keyCountersContract('in memory', async () => ({
  counters: new MemoryKeyCounters(),
  [Symbol.asyncDispose]: async () => {},
}));

for (const awsClient of [undefined, 'sdk'] as const)
  keyCountersContract(`on DynamoDB, by the client ${awsClient ?? 'of the relay'}`, async () => {
    const emulator = await startEmulator();
    process.env['AWS_ENDPOINT_URL_DYNAMODB'] = emulator.endpoint;
    return {
      counters: createKeyCounters(hotClient(awsClient), 'relay'),
      async [Symbol.asyncDispose]() {
        await emulator.stop();
      },
    };
  });
