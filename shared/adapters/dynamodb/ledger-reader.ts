/** Reads accounts, ledger rows and grants for operators: consistent reads, exact numbers. */
import { grantPrefix, latePrefix, findLedgerTimeMs, type LedgerRow } from '../../billing/ledger-row.ts';
import type { QuotaItem } from '../../billing/quota-item.ts';
import { firstCounter } from '../../billing/shares.ts';
import { mergeShards, type WholeAccount } from '../../billing/shards.ts';
import type { LedgerReader, LedgerSelection, Reading } from '../../operate/operator-ports.ts';
import type { TableName } from '../../tables/table-names.ts';
import { timeText } from '../../wire/ids.ts';
import { createDailyReader, createSumReader } from './daily-sums.ts';
import { readWrittenGrant } from './grant-store.ts';
import {
  readPartitionAccount,
  findLedgerPartitions,
  decodeLedgerRow,
  listPartitions,
} from './ledger-store.ts';
import { tryReading, type Store } from './operator-store.ts';
import { buildShardKey, buildShardName, parseShard, decodeQuota } from './quotas/quota-items.ts';
import { createQuotaStore } from './quotas/quota-store.ts';
import { listCounters, listShards, readWhole } from './quotas/whole-account.ts';
import { buildExpressions, Table, type Attributes } from './table-client.ts';

export function createLedgerReader(store: Store): LedgerReader {
  const { tables, target } = store;
  const tableOf = (table: TableName) => new Table(tables, target.stack, table);
  const ledger = tableOf('ledger');
  const quotas = createQuotaStore(tables, target.stack);

  const selectSources = async (selection: LedgerSelection): Promise<AsyncIterable<Attributes[]>[]> => {
    const { account, fromMs, toMs } = selection;
    if (account === undefined) return [ledger.readPages('Scan')];
    // A full read is compared with the account's item, so that item must not decide which partitions are read.
    if (fromMs === undefined && toMs === undefined)
      return listPartitions(account).map((of) => ledger.queryRange(ofAccount, { ':account': of }));
    return openRanges(ledger, await findLedgerPartitions(tables, target.stack, account), selection);
  };

  return {
    close: (...given) => quotas.close(...given),
    closedAs: (...given) => quotas.closedAs(...given),
    chargeLate: (...given) => quotas.chargeLate(...given),
    // An index read is not consistent, but reads a tenth of the bytes.
    async *ledgerAccounts() {
      for await (const page of ledger.readPages('Scan', { IndexName: 'by_id', ConsistentRead: undefined }))
        yield page.map((item) => readPartitionAccount(item['account']?.S ?? ''));
    },
    ...createBalanceReader(tableOf('quotas')),
    ...createDailyReader(store),
    ...createSumReader(store),
    async *accounts() {
      for await (const page of tableOf('quotas').readPages('Scan'))
        yield page.map(parseShard).flatMap(({ account, shard }) => (shard === 0 ? account : []));
    },
    async *ledger(selection) {
      for (const rows of await selectSources(selection))
        for await (const page of rows)
          yield page
            .map((item) => tryReading(item, nameRow(item), decodeLedgerRow))
            .filter(isInTime(selection));
    },
    async request(id) {
      const byId = buildExpressions({ KeyConditionExpression: 'id = :id' }, { ':id': id });
      const { Items: [found] = [] } = await ledger.query({ IndexName: 'by_id', ...byId });
      const account = found?.['account']?.S;
      const item = account === undefined ? undefined : await ledger.get({ account, id });
      return item && tryReading(item, nameRow(item), decodeLedgerRow);
    },
    async *grants(account) {
      const grants = tableOf('grants');
      const rows =
        account === undefined
          ? grants.readPages('Scan')
          : grants.queryRange(ofAccount, { ':account': account });
      for await (const page of rows) yield page.map(readWrittenGrant);
    },
  };
}

const ofAccount = 'account = :account';

function openRanges(
  ledger: Table,
  partitions: readonly string[],
  { fromMs, toMs }: LedgerSelection,
): AsyncIterable<Attributes[]>[] {
  // Request ids start with the time. Grants and late charges have other ids, but are few.
  const from = fromMs === undefined ? '0' : timeText(fromMs);
  const to = toMs === undefined ? grantPrefix : timeText(toMs);
  const isInRange = `${ofAccount} AND id BETWEEN :from AND :to`;
  const hasPrefix = `${ofAccount} AND begins_with(id, :prefix)`;
  return partitions.flatMap((account) => [
    ledger.queryRange(isInRange, { ':account': account, ':from': from, ':to': to }),
    ledger.queryRange(hasPrefix, { ':account': account, ':prefix': grantPrefix }),
    ledger.queryRange(hasPrefix, { ':account': account, ':prefix': latePrefix }),
  ]);
}

const nameRow = (item: Attributes): string => `${item['account']?.S} ${item['id']?.S}`;

const isInTime =
  ({ fromMs = -Infinity, toMs = Infinity }: LedgerSelection) =>
  (each: Reading<LedgerRow>): boolean => {
    if (!('row' in each)) return true;
    const time = findLedgerTimeMs(each.row);
    return fromMs <= time && time < toMs;
  };

// Unreadable shards are reported, not skipped.

function createBalanceReader(quotas: Table): Pick<LedgerReader, 'quota' | 'quotas'> {
  return {
    quota: (account) => readWhole(quotas, account).then((row) => row && { row }, reportUnreadable(account)),
    async quotas(accounts) {
      const keys = [...new Set(accounts)].map((account) => buildShardKey({ account }));
      const items = await quotas.read(keys);
      const readings = items.map((item) => tryReading(item, parseShard(item).account, readFirstShard));
      const otherShards = readings.flatMap((each) => ('row' in each ? each.row.others : []));
      const counters = readings.flatMap((each) => ('row' in each ? listCounters(each.row.first) : []));
      const shardItems = await quotas.read([...otherShards, ...counters].map(buildShardKey));
      const shards = new Map(shardItems.map((item) => [item['account']?.S ?? '', item]));
      return readings.map((each) => ('row' in each ? mergeReadings(each.row, shards) : each));
    },
  };
}

interface FirstShard {
  first: QuotaItem;
  others: { account: string; shard: number }[];
}

function readFirstShard(item: Attributes): FirstShard {
  const first = decodeQuota(item);
  return { first, others: listShards(first.account, first.highestShardCount).slice(1) };
}

/** The shards are read at different moments, so transfers between them show as `moved`. `quota` is exact. */
function mergeReadings(
  { first, others }: FirstShard,
  shards: ReadonlyMap<string, Attributes>,
): Reading<WholeAccount> {
  const all: [QuotaItem, ...QuotaItem[]] = [first];
  for (const other of [...others, ...listCounters(first)]) {
    const name = buildShardName(other);
    const item = shards.get(name);
    if (!item && other.shard >= firstCounter) continue;
    if (!item)
      return { key: first.account, problem: `quotas: the shard ${name} is missing, so the sums are unknown` };
    const read = tryReading(item, first.account, decodeQuota);
    if ('problem' in read) return read;
    all.push(read.row);
  }
  return { row: mergeShards(all) };
}

/** Reports an unreadable item, and throws any other error. */
const reportUnreadable =
  (account: string) =>
  (error: unknown): { key: string; problem: string } => {
    if (!(error instanceof Error && error.message.startsWith('quotas: '))) throw error;
    return { key: account, problem: error.message };
  };
