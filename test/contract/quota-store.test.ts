import { MemoryQuotaStore, nameOf } from '../support/memory-quota-store.ts';
import { openDynamoStore } from './quota-store-dynamo.ts';
import { quotaStoreContract } from './quota-store.ts';

quotaStoreContract('in memory', async () => {
  const store = new MemoryQuotaStore();
  return {
    store,
    put: async (item) => void store.items.set(nameOf(item), item),
    read: async (account, part) => store.items.get(nameOf({ account, part })),
    [Symbol.asyncDispose]: async () => {},
  };
});

quotaStoreContract('on DynamoDB', openDynamoStore);
