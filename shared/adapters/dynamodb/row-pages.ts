/** Parts of tables for pages of operators: a bounded number of requests each. Reads may be a second old where the port says nothing else. */
import type { QueryCommandInput } from '@aws-sdk/client-dynamodb';
import { accountId } from '../../billing/daily-keys.ts';
import { grantPrefix } from '../../billing/ledger-row.ts';
import type { RowPages, RowsFound, RowsWanted, RawRow } from '../../operate/operator-ports.ts';
import { physicalTableName, type TableName } from '../../tables/table-names.ts';
import { tableSchemas } from '../../tables/table-schemas.ts';
import { attributesOf, valuesOf, readItems } from './table-client.ts';
import { dailySumOf } from './daily-sums.ts';
import { ledgerRowOf } from './ledger-store.ts';
import { writtenGrantOf } from './grant-store.ts';
import { reading, type Store } from './operator-store.ts';
import { imageOf } from './health-items.ts';
import { cooldownsId } from './runtime-items.ts';

/** One request goes through 1 MB. */
const scansMax = 2;
/** Of more rows, the table is asked for as many as one request returns. */
const fewMax = 200;

export function dynamoRowPages(store: Store): RowPages {
  const { tables, target } = store;
  const nameOf = (table: TableName): string => physicalTableName(target.stack, table);
  const query = ({ table, ...input }: Omit<QueryCommandInput, 'TableName'> & { table: TableName }) =>
    tables.call('Query', { ...input, TableName: nameOf(table) });
  return {
    rows: (wanted) => foundRows(store, nameOf(wanted.table), wanted),
    async rowsOf(table, keys) {
      const name = tableSchemas[table].partitionKey.name;
      const wanted = keys.map((key) => attributesOf({ [name]: key }));
      return (await readItems(tables, nameOf(table), wanted)).map(valuesOf);
    },
    async grants(account, limit) {
      const { Items = [], LastEvaluatedKey } = await query({
        table: 'grants',
        KeyConditionExpression: 'account = :account',
        ExpressionAttributeValues: attributesOf({ ':account': account }),
        ScanIndexForward: false,
        ConsistentRead: true,
        // A query that returns as many as it may says that there are more, whether there are or not.
        Limit: limit + 1,
      });
      const isAll = LastEvaluatedKey === undefined && Items.length <= limit;
      return { grants: Items.slice(0, limit).map(writtenGrantOf), isAll };
    },
    async days(account, from, limit) {
      const id = accountId(account);
      const { Items = [], LastEvaluatedKey } = await query({
        table: 'daily',
        KeyConditionExpression: 'id = :id AND period BETWEEN :from AND :to',
        // `~` sorts after the digits of a day.
        ExpressionAttributeValues: attributesOf({ ':id': id, ':from': `day#${from}`, ':to': 'day#~' }),
        ScanIndexForward: false,
        ConsistentRead: true,
        Limit: limit,
      });
      const days = Items.map((item) => reading(item, `daily ${id} ${item['period']?.S}`, dailySumOf));
      return { days, isAll: LastEvaluatedKey === undefined };
    },
    async requests(account, before, limit) {
      const { Items = [], LastEvaluatedKey } = await query({
        table: 'ledger',
        KeyConditionExpression: 'account = :account AND id < :before',
        // Request ids begin with a digit, which sorts before the ids of grants.
        ExpressionAttributeValues: attributesOf({ ':account': account, ':before': before ?? grantPrefix }),
        ScanIndexForward: false,
        Limit: limit,
      });
      const rows = Items.map((item) => reading(item, `${account} ${item['id']?.S}`, ledgerRowOf));
      return { rows, next: LastEvaluatedKey && Items.at(-1)?.['id']?.S };
    },
    async health() {
      const Key = attributesOf({ id: cooldownsId });
      const { Item } = await tables.call('GetItem', { TableName: nameOf('runtime'), Key });
      return imageOf(Item && valuesOf(Item)).entries;
    },
  };
}

async function foundRows(
  { tables }: Store,
  TableName: string,
  { table, after, where, limit }: RowsWanted,
): Promise<RowsFound> {
  const key = tableSchemas[table].partitionKey.name;
  const rows: RawRow[] = [];
  let start = after === undefined ? undefined : attributesOf({ [key]: after });
  // What is filtered out is gone through as well, but not sent.
  const requestsMax = where ? scansMax : 1;
  const ConsistentRead = where !== undefined && 'is' in where;
  const few = where === undefined && limit <= fewMax ? { Limit: limit } : {};
  for (let asked = 0; asked < requestsMax; asked += 1) {
    const input = { TableName, ExclusiveStartKey: start, ...filterOf(where), ...few, ConsistentRead };
    const { Items = [], LastEvaluatedKey } = await tables.call('Scan', input);
    rows.push(...Items.map(valuesOf));
    start = LastEvaluatedKey;
    if (start === undefined || rows.length >= limit) break;
  }
  if (rows.length <= limit) return { rows, next: start?.[key]?.S };
  const shown = rows.slice(0, limit);
  return { rows: shown, next: String(shown.at(-1)?.[key]) };
}

function filterOf(where: RowsWanted['where']) {
  if (!where) return {};
  const [condition, value] =
    'is' in where ? ['#name = :value', where.is] : ['contains(#name, :value)', where.contains];
  return {
    FilterExpression: condition,
    ExpressionAttributeNames: { '#name': where.attribute },
    ExpressionAttributeValues: attributesOf({ ':value': value }),
  };
}
