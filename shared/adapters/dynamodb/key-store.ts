/** Finds keys by hash, with the row of their account. Reads are eventually consistent and cached. */
import { isAccountOff, parseAccountRow } from '../../config/rows/account-row.ts';
import { KeyRow, findKeyRefusal } from '../../config/rows/key-row.ts';
import { parseRow } from '../../config/rows/read-row.ts';
import type { Clock } from '../../relay/ports/host.ts';
import type { KeyLookup, KeyStore } from '../../relay/ports/config-store.ts';
import { firstTryMsMax } from '../../relay/ports/store-errors.ts';
import { Table, valuesOf, type Attributes, type StoreDeps } from './table-client.ts';
import { ExpiringCache } from '../system/node-ports.ts';
import { keyHash } from '../../wire/ids.ts';

/** A disabled key may work for this long. */
const foundLifetimeMs = 30_000;
/** A key that was tried before its creation stays unknown for this long. */
const refusedLifetimeMs = 5000;

interface KeyStoreDeps extends StoreDeps {
  clock: Clock;
  entriesMax?: number;
}

export function createKeyStore({ client, clock, stack, entriesMax = 10_000 }: KeyStoreDeps): KeyStore {
  const cache = new ExpiringCache<KeyLookup>({
    clock,
    entriesMax,
    lifetimeMs: (lookup) => (isUsable(lookup, clock.now()) ? foundLifetimeMs : refusedLifetimeMs),
  });
  let hasRead = false;
  const get = async (table: 'keys' | 'accounts' | 'runtime', key: Record<string, string>) => {
    const times = hasRead ? {} : { tryMsMax: firstTryMsMax };
    const item = await new Table(client, stack, table).get(key, { ConsistentRead: undefined }, times);
    return item && valuesOf(item);
  };
  const read = async (hash: string): Promise<KeyLookup> => {
    const Item = await get('keys', { hash });
    if (!Item) return { missing: 'unknown' };
    const row = parseRow(KeyRow, Item);
    if (!row) return { missing: 'invalid_row' };
    const { account } = row;
    const [read, shardCount] = await Promise.all([readAccount(account), readShardCount(account)]);
    hasRead = true;
    return { row, ...read, shardCount };
  };
  /** Without it, calls of a busy account start on the first shard: slow, not wrong. */
  const readShardCount = async (account: string): Promise<number | undefined> => {
    const Item = await get('runtime', { id: buildShardCountId(account) }).catch(() => undefined);
    const count: unknown = Item?.['parts'];
    return typeof count === 'number' ? count : undefined;
  };
  /** Without a valid row an account has no plan, but its balance still pays. */
  const readAccount = async (account: string) => {
    const Item = await get('accounts', { account });
    return { account: Item && parseAccountRow(Item), accountOff: isAccountOff(Item) };
  };
  return {
    find: (secretKey, ageMsMax) => {
      const hash = keyHash(secretKey);
      return cache.get(hash, () => read(hash), ageMsMax);
    },
  };
}

const isUsable = (lookup: KeyLookup, nowMs: number): boolean =>
  'row' in lookup && lookup.accountOff !== true && findKeyRefusal(lookup.row, nowMs) === undefined;

// The item of `runtime` with an account's number of shards: read with keys, written by splits.

export const buildShardCountId = (account: string): string => `parts#${account}`;

export const buildShardCountItem = (account: string, parts: number): Attributes => ({
  id: { S: buildShardCountId(account) },
  parts: { N: String(parts) },
});
