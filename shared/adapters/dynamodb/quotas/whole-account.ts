/** Reads all shards of an account as of one moment. An unreadable shard is an error, never left out. */
import { mergeShards, type AccountShards, type WholeAccount } from '../../../billing/shards.ts';
import { countersMax, firstCounter } from '../../../billing/shares.ts';
import type { QuotaItem } from '../../../billing/quota-item.ts';
import type { Attributes, Table } from '../table-client.ts';
import { readAsOfOneMoment } from '../transactions.ts';
import { buildShardKey, buildShardName, decodeQuota } from './quota-items.ts';

/** Errors name the shard and the attribute. */
export async function readWhole(quotas: Table, account: string): Promise<WholeAccount | undefined> {
  // A balance read directly after a call must include that call.
  const Item = await quotas.get({ account });
  const first = Item && decodeQuota(Item);
  if (!first) return undefined;
  let images: AccountShards = [first];
  // A concurrent split moves money to shards that were not read.
  while (images.length < images[0].highestShardCount)
    images = await readShards(quotas, account, images[0].highestShardCount);
  const counters = await quotas.read(listCounters(first).map(buildShardKey));
  return mergeShards([...images, ...counters.map((item) => decodeShard(item['account']?.S ?? '', item))]);
}

/** Counters exchange no amounts, so they need not be read at one moment. */
export const listCounters = ({
  account,
  counters = 0,
}: Pick<QuotaItem, 'account' | 'counters'>): { account: string; shard: number }[] =>
  Array.from({ length: Math.min(counters, countersMax) }, (_, at) => ({ account, shard: firstCounter + at }));

/** The limit of a transaction. Accounts never have so many. */
export const shardsMax = 100;

/** Checks the count, because a wrong one must not be counted to. */
export function listShards(account: string, count: number): { account: string; shard: number }[] {
  if (count > shardsMax) throw new Error(`quotas: ${count} is an invalid number of shards`);
  return Array.from({ length: count }, (_, shard) => ({ account, shard }));
}

async function readShards({ client, name }: Table, account: string, count: number): Promise<AccountShards> {
  const names = listShards(account, count);
  const items = await readAsOfOneMoment(client, name, names.map(buildShardKey));
  const images = names.map((of, at) => decodeShard(buildShardName(of), items[at]));
  return images as unknown as AccountShards;
}

function decodeShard(name: string, item: Attributes | undefined): QuotaItem {
  if (!item) throw new Error(`quotas: the shard ${name} is missing, so the sums are unknown`);
  try {
    return decodeQuota(item);
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : String(error)}, in the shard ${name}`, {
      cause: error,
    });
  }
}
