import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { tablesOn } from '../support/sdk-tables.ts';
import type { TableClient } from '../../shared/adapters/dynamodb/table-client.ts';
import { createTurnStateStore } from '../../shared/adapters/dynamodb/turn-states.ts';
import { startEmulator } from '../support/emulator.ts';
import { MemoryTurnStateStore } from '../support/memory-turn-state-store.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { countedClient, hotClient } from '../unit/adapters/dynamodb/store.ts';
import { turnStateStoreContract } from './turn-state-store.ts';

const clock = new VirtualClock();
const nowSeconds = clock.now() / 1000;

turnStateStoreContract(
  'in memory',
  async () => ({ store: new MemoryTurnStateStore(clock), [Symbol.asyncDispose]: async () => {} }),
  nowSeconds,
);

turnStateStoreContract(
  'on DynamoDB',
  async () => {
    const emulator = await startEmulator();
    process.env['AWS_ENDPOINT_URL_DYNAMODB'] = emulator.endpoint;
    return {
      store: createTurnStateStore({ client: hotClient(), clock, stack: 'relay' }),
      async [Symbol.asyncDispose]() {
        await emulator.stop();
      },
    };
  },
  nowSeconds,
);

it('on DynamoDB a turn is one write, and the turns of a call one batch', async () => {
  const emulator = await startEmulator();
  process.env['AWS_ENDPOINT_URL_DYNAMODB'] = emulator.endpoint;
  const { client, calls } = countedClient();
  const store = createTurnStateStore({ client: tablesOn(client), clock, stack: 'relay' });
  for (const callId of ['one', 'two']) await store.put({ account: 'a', callId }, callId, nowSeconds + 1);
  expect(await store.read('a', ['one', 'two', 'three'])).toHaveProperty('size', 2);
  expect(calls).toEqual(['PutItem relay-runtime', 'PutItem relay-runtime', 'BatchGetItem relay-runtime']);
  client.destroy();
  await emulator.stop();
});

it('on DynamoDB many turns are read in parallel, because a client waits for them', async () => {
  let running = 0;
  let most = 0;
  const call = async (): Promise<object> => {
    running += 1;
    most = Math.max(most, running);
    await setImmediate();
    running -= 1;
    return {};
  };
  const store = createTurnStateStore({ client: { call } as TableClient, clock, stack: 'relay' });
  await store.read(
    'a',
    Array.from({ length: 150 }, (_, index) => `call${index}`),
  );
  expect(most).toBe(3);
});
