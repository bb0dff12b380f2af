import { MemoryQuotaStore } from '../support/memory-quota-store.ts';
import { openDynamoStore } from './quota-store-dynamo.ts';
import { quotaStoreContract } from './quota-store.ts';

quotaStoreContract('in memory', async () => {
  const store = new MemoryQuotaStore();
  return {
    store,
    put: async (item) => void store.items.set(item.account, item),
    read: async (account) => store.items.get(account),
    [Symbol.asyncDispose]: async () => {},
  };
});

quotaStoreContract('on DynamoDB', openDynamoStore);
