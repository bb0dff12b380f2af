/**
 * Restores tables to a point in time beside the stack's, and puts lost rows back. Copies are named like tables of another
 * stack. Must never write to a copy, nor a row that is not as it was read.
 * https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/pointintimerecovery_restores.html
 */
import type { AttributeValue, TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { createQuotaItem, type QuotaItem } from '../../billing/quota-item.ts';
import { parseYuan } from '../../billing/money.ts';
import { countersMax, firstCounter, shardCountMax } from '../../billing/shares.ts';
import type { WholeAccount } from '../../billing/shards.ts';
import type { LostRow, TableCopies } from '../../operate/operator-ports.ts';
import { Failure } from '../../operate/plan.ts';
import { physicalNameOf, type TableName } from '../../tables/table-names.ts';
import { tableSchemas, type TableSchema } from '../../tables/table-schemas.ts';
import { canonicalJson } from '../../wire/json.ts';
import { createLedgerReader } from './ledger-reader.ts';
import type { Store } from './operator-store.ts';
import { encodeQuota, buildShardKey, parseShard, decodeQuota } from './quotas/quota-items.ts';
import { listCounters, listShards } from './quotas/whole-account.ts';
import {
  chunksOf,
  callConditionally,
  buildExpressions,
  Table,
  type Attributes,
  type TableClient,
} from './table-client.ts';
import { writeTransaction } from './transactions.ts';

export function createTableCopies(store: Store): TableCopies {
  const { tables: client, target } = store;
  const createReader = (stack: string) => createLedgerReader({ ...store, target: { ...target, stack } });
  return {
    async window(tables) {
      const ends = await Promise.all(tables.map((table) => readWindow(client, target.stack, table)));
      return {
        fromMs: Math.max(...ends.map(({ fromMs }) => fromMs)),
        toMs: Math.min(...ends.map(({ toMs }) => toMs)),
      };
    },
    async status(copy, table) {
      try {
        const TableName = physicalNameOf(copy, table);
        return (await client.call('DescribeTable', { TableName })).Table?.TableStatus;
      } catch (error) {
        if (error instanceof Error && error.name === 'ResourceNotFoundException') return undefined;
        throw error;
      }
    },
    async make(copy, table, atMs) {
      await client.call('RestoreTableToPointInTime', {
        SourceTableName: physicalNameOf(target.stack, table),
        TargetTableName: physicalNameOf(copy, table),
        RestoreDateTime: atMs / 1000,
      });
    },
    async remove(copy, table) {
      await client.call('DeleteTable', { TableName: physicalNameOf(copy, table) });
    },
    quota: (copy, account) => createReader(copy).quota(account),
    accounts: (copy) => createReader(copy).accounts(),
    async *lost(copy, table) {
      const here = new Table(client, target.stack, table);
      for await (const items of new Table(client, copy, table).readPages('Scan')) {
        const found = await here.read(items.map((item) => keyOf(table, item)));
        const byKey = new Map(found.map((item) => [textOf(keyOf(table, item)), item]));
        yield items.flatMap((item) => findLostRow(table, item, byKey.get(textOf(keyOf(table, item)))));
      }
    },
    async putBack({ table, item, isChanged }) {
      const key = tableSchemas[table].partitionKey.name;
      const isGone = buildExpressions(
        { ConditionExpression: 'attribute_not_exists(#key)' },
        {},
        { '#key': key },
      );
      const TableName = physicalNameOf(target.stack, table);
      const put = { TableName, Item: item as Attributes, ...(!isChanged && isGone) };
      return (await callConditionally(() => client.call('PutItem', put))).done;
    },
    replaceQuota: (item, seen) => replaceQuota(new Table(client, target.stack, 'quotas'), item, seen),
  };
}

async function readWindow(client: TableClient, stack: string, table: TableName) {
  const TableName = physicalNameOf(stack, table);
  const { ContinuousBackupsDescription } = await client.call('DescribeContinuousBackups', { TableName });
  const {
    PointInTimeRecoveryStatus: status,
    EarliestRestorableDateTime: from = Infinity,
    LatestRestorableDateTime: to = -Infinity,
  } = ContinuousBackupsDescription?.PointInTimeRecoveryDescription ?? {};
  if (status !== 'ENABLED')
    throw new Failure(`${TableName} has no point-in-time recovery: nothing to restore`);
  return { fromMs: from * 1000, toMs: to * 1000 };
}

function keyOf(table: TableName, item: Attributes): Attributes {
  const { partitionKey, sortKey }: TableSchema = tableSchemas[table];
  const names = [partitionKey, sortKey].flatMap((key) => key?.name ?? []);
  return Object.fromEntries(names.flatMap((name) => (item[name] ? [[name, item[name]]] : [])));
}

const textOf = (item: Attributes): string => canonicalJson(item) ?? '';

const amountOf = ({ charge, amount }: Attributes) => parseYuan((charge ?? amount)?.N ?? '0');

/** A tombstone's row gives way to its call's row, so that is no loss. */
function findLostRow(table: TableName, item: Attributes, found: Attributes | undefined): LostRow[] {
  if (!found) return [{ table, item, amount: amountOf(item), isChanged: false }];
  const isChanged = table === 'ledger' && item['kind']?.S !== 'cancelled' && textOf(item) !== textOf(found);
  return isChanged ? [{ table, item, amount: amountOf(item), isChanged }] : [];
}

const compared = ['available', 'spent', 'granted', 'settled'] as const;
/** DynamoDB's limit. */
const writesMax = 100;

/**
 * Puts all money into shard 0 and leaves the others empty, as in a quiet account. Counters go first: they exceed one
 * transaction, and a repeat finds the remaining ones.
 */
async function replaceQuota(
  quotas: Table,
  item: QuotaItem,
  seen: WholeAccount | undefined,
): Promise<boolean> {
  const { account } = item;
  const names = [...listShards(account, shardCountMax), ...listCounters({ account, counters: countersMax })];
  const storedItems = new Map<number, Attributes>();
  for (const each of await quotas.read(names.map(buildShardKey))) {
    const of = parseShard(each);
    if (of.account === account) storedItems.set(of.shard, each);
  }
  if (seen && !isAsSeen(storedItems, seen)) return false;
  const put = async (items: readonly QuotaItem[]): Promise<boolean> => {
    const writes = items.map((each): TransactWriteItem => ({
      Put: {
        TableName: quotas.name,
        Item: encodeQuota(each),
        ...buildUnchangedCondition(storedItems.get(each.shard)),
      },
    }));
    const reply = await writeTransaction(quotas.client, writes);
    if (!reply.done && reply.conditions.length === 0) throw reply.error;
    return reply.done;
  };
  const counters = [...storedItems.keys()].filter((shard) => shard >= firstCounter);
  for (const some of chunksOf(counters, writesMax))
    if (!(await put(some.map((shard) => createQuotaItem(account, shard))))) return false;
  const highestShardCount =
    Math.max(0, ...[...storedItems.keys()].filter((shard) => shard < firstCounter)) + 1;
  const first = { ...item, highestShardCount, ...(counters.length > 0 && { counters: countersMax }) };
  return put([
    first,
    ...listShards(account, highestShardCount)
      .slice(1)
      .map(({ shard }) => createQuotaItem(account, shard)),
  ]);
}

const isAsSeen = (storedItems: ReadonlyMap<number, Attributes>, seen: WholeAccount): boolean =>
  (seen.shards ?? [seen]).every((shard) => {
    const attributes = storedItems.get(shard.shard);
    const now = attributes && decodeQuota(attributes);
    return now && (['available', 'spent', 'granted'] as const).every((name) => now[name] === shard[name]);
  });

/** Compares raw attributes, so also unreadable ones. */
function buildUnchangedCondition(found: Attributes | undefined) {
  if (!found) return { ConditionExpression: 'attribute_not_exists(account)' };
  const there = compared.filter((name) => found[name] !== undefined);
  const conditions = compared.map((name) =>
    there.includes(name) ? `#${name} = :${name}` : `attribute_not_exists(#${name})`,
  );
  return {
    ...buildExpressions({ ConditionExpression: conditions.join(' AND ') }),
    ...(there.length > 0 && {
      ExpressionAttributeValues: Object.fromEntries(
        there.map((name) => [`:${name}`, found[name] as AttributeValue]),
      ),
    }),
  };
}
