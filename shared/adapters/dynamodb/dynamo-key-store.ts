/**
 * Looks up keys of the table `keys` by hash, with the row of their account. Reads are eventually consistent
 * and cached.
 */
import { GetCommand, type DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { AccountRow, isAccountOff } from '../../config/rows/account-row.ts';
import { KeyRow } from '../../config/rows/key-row.ts';
import { readRow } from '../../config/rows/read-row.ts';
import type { Clock } from '../../relay/ports/clock.ts';
import type { KeyLookup, KeyStore } from '../../relay/ports/stores/key-store.ts';
import { storeCall } from './dynamo-client.ts';
import { ExpiringCache } from '../system/expiring-cache.ts';
import { keyHash } from '../../tables/key-hash.ts';
import { physicalTableName } from '../../tables/table-names.ts';

/** Lifetime of a cached key. A disabled key may work for this long. */
const foundLifetimeMs = 30_000;
/** Lifetime of a cached miss. A key that was tried before its creation stays unknown for this long. */
const missingLifetimeMs = 5000;

export interface KeyStoreParts {
  client: DynamoDBDocumentClient;
  clock: Clock;
  stack: string;
  entriesMax?: number;
}

export function dynamoKeyStore({ client, clock, stack, entriesMax = 10_000 }: KeyStoreParts): KeyStore {
  const TableName = physicalTableName(stack, 'keys');
  const accounts = physicalTableName(stack, 'accounts');
  const cache = new ExpiringCache<KeyLookup>({
    clock,
    entriesMax,
    lifetimeMs: (lookup) => ('row' in lookup ? foundLifetimeMs : missingLifetimeMs),
  });
  const read = async (hash: string): Promise<KeyLookup> => {
    const { Item } = await storeCall(() => client.send(new GetCommand({ TableName, Key: { hash } })));
    if (!Item) return { missing: 'unknown' };
    const reading = readRow(KeyRow, Item);
    if (!('row' in reading)) return { missing: 'invalid_row' };
    return { row: reading.row, ...(await readAccount(reading.row.account)) };
  };
  /** An account without a valid row has no plan; its balance still pays. */
  const readAccount = async (account: string) => {
    const command = new GetCommand({ TableName: accounts, Key: { account } });
    const { Item } = await storeCall(() => client.send(command));
    const reading = Item && readRow(AccountRow, Item);
    return {
      account: reading && 'row' in reading ? reading.row : undefined,
      accountOff: isAccountOff(Item),
    };
  };
  return {
    find: (secretKey) => {
      const hash = keyHash(secretKey);
      return cache.get(hash, () => read(hash));
    },
  };
}
