import { GetCommand, type DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { KeyRow } from '../config/key-row.ts';
import { readRow } from '../config/read-row.ts';
import type { Clock, KeyLookup, KeyStore } from '../relay/ports.ts';
import { storeCall } from './dynamo.ts';
import { ExpiringCache } from './expiring-cache.ts';
import { keyHash } from './key-hash.ts';
import { physicalTableName } from './table-schema.ts';

/** A disabled key works at most this much longer; a new key that was tried too early waits the second. */
const foundLifetimeMs = 30_000;
const missingLifetimeMs = 5000;

export interface KeyStoreParts {
  client: DynamoDBDocumentClient;
  clock: Clock;
  stack: string;
  entriesMax?: number;
}

/** Keys of the table `keys`, found by hash; eventually consistent and cached. */
export function dynamoKeyStore({ client, clock, stack, entriesMax = 10_000 }: KeyStoreParts): KeyStore {
  const TableName = physicalTableName(stack, 'keys');
  const cache = new ExpiringCache<KeyLookup>({
    clock,
    entriesMax,
    lifetimeMs: (lookup) => ('row' in lookup ? foundLifetimeMs : missingLifetimeMs),
  });
  const read = async (hash: string): Promise<KeyLookup> => {
    const { Item } = await storeCall(() => client.send(new GetCommand({ TableName, Key: { hash } })));
    return Item ? lookupOf(Item) : { missing: 'unknown' };
  };
  return {
    find: (secretKey) => {
      const hash = keyHash(secretKey);
      return cache.get(hash, () => read(hash));
    },
  };
}

function lookupOf(item: Record<string, unknown>): KeyLookup {
  const reading = readRow(KeyRow, item);
  return 'row' in reading ? { row: reading.row } : { missing: 'invalid_row' };
}
