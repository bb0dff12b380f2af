import type { QuotaItem } from '../../shared/billing/quota-item.ts';
import { MemoryQuotaStore, nameOf } from '../support/memory-quota-store.ts';
import { openDynamoStore, openHotStore } from './quota-store-dynamo.ts';
import { quotaPartsContract } from './quota-store-parts.ts';
import { quotaStoreContract } from './quota-store.ts';

const openMemoryStore = async () => {
  const store = new MemoryQuotaStore();
  return {
    store,
    put: async (item: QuotaItem) => void store.items.set(nameOf(item), item),
    read: async (account: string, part?: number) => store.items.get(nameOf({ account, shard: part })),
    partsWithKey: async (account: string) => store.parts.get(account),
    [Symbol.asyncDispose]: async () => {},
  };
};

for (const contract of [quotaStoreContract, quotaPartsContract]) {
  contract('in memory', openMemoryStore);
  contract('on DynamoDB', openDynamoStore);
  contract('on DynamoDB, by the client of hot paths', openHotStore);
}
