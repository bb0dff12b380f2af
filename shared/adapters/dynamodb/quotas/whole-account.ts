/** Reads all parts of an account as of one moment. A part that cannot be read is an error, never left out. */
import { mergeShards, type AccountShards, type WholeAccount } from '../../../billing/shards.ts';
import { countersMax, firstCounter } from '../../../billing/shares.ts';
import type { QuotaItem } from '../../../billing/quota-item.ts';
import type { Attributes, Table } from '../table-client.ts';
import { readAsOfOneMoment } from '../transactions.ts';
import { buildShardKey, buildShardName, decodeQuota } from './quota-items.ts';

/** Undefined: the account has no item. Throws an Error that names the part and the attribute. */
export async function readWhole(quotas: Table, account: string): Promise<WholeAccount | undefined> {
  // A balance read directly after a call must include that call.
  const Item = await quotas.get({ account });
  const first = Item && decodeQuota(Item);
  if (!first) return undefined;
  let images: AccountShards = [first];
  // A split meanwhile moves money to parts that were not read.
  while (images.length < images[0].highestShardCount)
    images = await readFirst(quotas, account, images[0].highestShardCount);
  const counters = await quotas.read(listCounters(first).map(buildShardKey));
  return mergeShards([...images, ...counters.map((item) => imageOf(item['account']?.S ?? '', item))]);
}

/** The counters that an account may have. Nothing moves between them, so they need not be read as of one moment. */
export const listCounters = ({
  account,
  counters = 0,
}: Pick<QuotaItem, 'account' | 'counters'>): { account: string; shard: number }[] =>
  Array.from({ length: Math.min(counters, countersMax) }, (_, at) => ({ account, shard: firstCounter + at }));

/** More items than a transaction reads; there are never so many parts. */
export const partsMax = 100;

/** The names of an account's parts, part 0 first. A count that nobody wrote must not be counted to. */
export function partsOf(account: string, count: number): { account: string; shard: number }[] {
  if (count > partsMax) throw new Error(`quotas: ${count} is no number of parts`);
  return Array.from({ length: count }, (_, shard) => ({ account, shard }));
}

/** So many parts as of one moment. */
async function readFirst({ client, name }: Table, account: string, count: number): Promise<AccountShards> {
  const names = partsOf(account, count);
  const items = await readAsOfOneMoment(client, name, names.map(buildShardKey));
  const images = names.map((of, at) => imageOf(buildShardName(of), items[at]));
  return images as unknown as AccountShards;
}

function imageOf(name: string, item: Attributes | undefined): QuotaItem {
  if (!item) throw new Error(`quotas: the part ${name} is missing, so the sums are unknown`);
  try {
    return decodeQuota(item);
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : String(error)}, in the part ${name}`, {
      cause: error,
    });
  }
}
