/**
 * Looks up keys of the table `keys` by hash, with the row of their account. Reads are eventually consistent
 * and cached.
 */
import { GetCommand, type DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { AccountRow, isAccountOff } from '../../config/rows/account-row.ts';
import { KeyRow, refusedFor } from '../../config/rows/key-row.ts';
import { readRow } from '../../config/rows/read-row.ts';
import type { Clock } from '../../relay/ports/clock.ts';
import type { KeyLookup, KeyStore } from '../../relay/ports/stores/key-store.ts';
import { firstTryMsMax } from '../../relay/ports/stores/store-errors.ts';
import { storeCall } from './dynamo-client.ts';
import { partsId } from './account-parts.ts';
import { ExpiringCache } from '../system/expiring-cache.ts';
import { keyHash } from '../../tables/key-hash.ts';
import { physicalTableName } from '../../tables/table-names.ts';

/** Lifetime of a cached key. A disabled key may work for this long. */
const foundLifetimeMs = 30_000;
/** Lifetime of a cached refusal. A key that was tried before its creation stays unknown for this long. */
const refusedLifetimeMs = 5000;

export interface KeyStoreParts {
  client: DynamoDBDocumentClient;
  clock: Clock;
  stack: string;
  entriesMax?: number;
}

export function dynamoKeyStore({ client, clock, stack, entriesMax = 10_000 }: KeyStoreParts): KeyStore {
  const TableName = physicalTableName(stack, 'keys');
  const accounts = physicalTableName(stack, 'accounts');
  const runtime = physicalTableName(stack, 'runtime');
  const cache = new ExpiringCache<KeyLookup>({
    clock,
    entriesMax,
    lifetimeMs: (lookup) => (isUsable(lookup, clock.now()) ? foundLifetimeMs : refusedLifetimeMs),
  });
  let hasRead = false;
  const send = (command: GetCommand) =>
    client.send(command, hasRead ? {} : { requestTimeout: firstTryMsMax });
  const read = async (hash: string): Promise<KeyLookup> => {
    const { Item } = await storeCall(() => send(new GetCommand({ TableName, Key: { hash } })));
    if (!Item) return { missing: 'unknown' };
    const reading = readRow(KeyRow, Item);
    if (!('row' in reading)) return { missing: 'invalid_row' };
    const { account } = reading.row;
    const [read, parts] = await Promise.all([readAccount(account), readParts(account)]);
    hasRead = true;
    return { row: reading.row, ...read, parts };
  };
  /** Without this number a call starts on the first part of a busy account, which is slow but not wrong. */
  const readParts = async (account: string): Promise<number | undefined> => {
    const command = new GetCommand({ TableName: runtime, Key: { id: partsId(account) } });
    const { Item } = await send(command).catch(() => ({ Item: undefined }));
    const parts: unknown = Item?.['parts'];
    return typeof parts === 'number' ? parts : undefined;
  };
  /** An account without a valid row has no plan; its balance still pays. */
  const readAccount = async (account: string) => {
    const command = new GetCommand({ TableName: accounts, Key: { account } });
    const { Item } = await storeCall(() => send(command));
    const reading = Item && readRow(AccountRow, Item);
    return {
      account: reading && 'row' in reading ? reading.row : undefined,
      accountOff: isAccountOff(Item),
    };
  };
  return {
    find: (secretKey, ageMsMax) => {
      const hash = keyHash(secretKey);
      return cache.get(hash, () => read(hash), ageMsMax);
    },
  };
}

const isUsable = (lookup: KeyLookup, nowMs: number): boolean =>
  'row' in lookup && lookup.accountOff !== true && refusedFor(lookup.row, nowMs) === undefined;
