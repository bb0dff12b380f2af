import { GetItemCommand, PutItemCommand } from '@aws-sdk/client-dynamodb';
import {
  encodeEntry,
  encodeCloseRecord,
  encodeNumber,
  buildPermitsName,
  decodeQuota,
  buildShardKey,
} from '../../shared/adapters/dynamodb/quotas/quota-items.ts';
import { buildShardCountId } from '../../shared/adapters/dynamodb/key-store.ts';
import type { Attributes } from '../../shared/adapters/dynamodb/table-client.ts';
import { createQuotaStore } from '../../shared/adapters/dynamodb/quotas/quota-store.ts';
import type { QuotaItem, RateCount } from '../../shared/billing/quota-item.ts';
import { hotClient } from '../unit/adapters/dynamodb/store.ts';
import { emulatorClient, startEmulator } from '../support/emulator.ts';
import type { OpenedStore } from './quota-store-rig.ts';

const TableName = 'relay-quotas';

type DynamoStore = OpenedStore & AsyncDisposable & { endpoint: string };

/** Opens the adapter on its own DynamoDB emulator, with AWS's client. */
export const openDynamoStore = (): Promise<DynamoStore> => openStore('sdk');

/** The same with the client of hot paths, which the answering functions use. */
export const openHotStore = (): Promise<DynamoStore> => openStore();

async function openStore(awsClient?: 'sdk'): Promise<DynamoStore> {
  const emulator = await startEmulator();
  process.env['AWS_ENDPOINT_URL_DYNAMODB'] = emulator.endpoint;
  const client = emulatorClient(emulator.endpoint);
  const hot = hotClient(awsClient);
  // A client resolves its endpoint at its first call, before another store of this process changes it.
  await hot.call('GetItem', { TableName, Key: buildShardKey({ account: 'nobody' }) });
  return {
    endpoint: emulator.endpoint,
    store: createQuotaStore(hot, 'relay'),
    async put(item) {
      await client.send(new PutItemCommand({ TableName, Item: attributesOf(item) }));
    },
    async read(account, part) {
      const Key = buildShardKey({ account, shard: part });
      const { Item } = await client.send(new GetItemCommand({ TableName, Key, ConsistentRead: true }));
      return Item && decodeQuota(Item);
    },
    async partsWithKey(account) {
      const Key = { id: { S: buildShardCountId(account) } };
      const { Item } = await client.send(new GetItemCommand({ TableName: 'relay-runtime', Key }));
      return Item && Number(Item['parts']?.N);
    },
    async [Symbol.asyncDispose]() {
      client.destroy();
      await emulator.stop();
    },
  };
}

export const attributesOf = (item: QuotaItem): Attributes => ({
  ...buildShardKey(item),
  ...(item.shard > 0 && { part: encodeNumber(item.shard) }),
  ...(item.shardCount > 1 && { parts: encodeNumber(item.shardCount) }),
  ...(item.highestShardCount > 1 && { made: encodeNumber(item.highestShardCount) }),
  ...(item.overdraft && { overdraft: { BOOL: true } }),
  ...(item.moved !== 0n && { moved: encodeNumber(item.moved) }),
  ...Object.fromEntries([...item.permits].map(([key, ids]) => [buildPermitsName(key), { SS: [...ids] }])),
  available: encodeNumber(item.available),
  spent: encodeNumber(item.spent),
  granted: encodeNumber(item.granted),
  settled: encodeNumber(item.settled),
  open: mapAttribute(item.open, encodeEntry),
  plan: mapAttribute(item.plan, encodeNumber),
  rate: { M: item.rate ? { account: minuteAttribute(item.rate) } : {} },
  ...(item.last && { last: encodeCloseRecord(item.last) }),
});

const minuteAttribute = ({ minute, count, tokens = 0 }: RateCount): Attributes[string] => ({
  M: { minute: encodeNumber(minute), count: encodeNumber(count), tokens: encodeNumber(tokens) },
});

const mapAttribute = <Value>(
  map: Map<string, Value>,
  write: (value: Value) => Attributes[string],
): Attributes[string] => ({
  M: Object.fromEntries([...map].map(([name, value]) => [name, write(value)])),
});
