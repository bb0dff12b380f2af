/** Parts of tables for pages of operators: a bounded number of requests each. Reads may be a second old where the port says nothing else. */
import {
  GetItemCommand,
  QueryCommand,
  ScanCommand,
  type QueryCommandInput,
  type ScanCommandOutput,
} from '@aws-sdk/client-dynamodb';
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import { accountId } from '../../billing/daily-keys.ts';
import { grantPrefix } from '../../billing/ledger-row.ts';
import type { RowPages, RowsFound, RowsWanted, RawRow } from '../../operate/operator-ports.ts';
import { physicalTableName, type TableName } from '../../tables/table-names.ts';
import { tableSchemas } from '../../tables/table-schemas.ts';
import type { Attributes } from './table-client.ts';
import { dailySumOf } from './daily-sums.ts';
import { ledgerRowOf } from './ledger-store.ts';
import { writtenGrantOf } from './grant-store.ts';
import { itemsOf, reading, type Store } from './operator-store.ts';
import { imageOf } from './health-items.ts';
import { cooldownsId } from './runtime-items.ts';

/** One request goes through 1 MB. */
const scansMax = 2;
/** Of more rows, the table is asked for as many as one request returns. */
const fewMax = 200;

export function dynamoRowPages(store: Store): RowPages {
  const { client, explained, target } = store;
  const nameOf = (table: TableName): string => physicalTableName(target.stack, table);
  const query = async (input: Omit<QueryCommandInput, 'TableName'> & { table: TableName }) => {
    const { table, ...rest } = input;
    return explained(client.send(new QueryCommand({ ...rest, TableName: nameOf(table) })));
  };
  return {
    rows: (wanted) => foundRows(store, nameOf(wanted.table), wanted),
    async rowsOf(table, keys) {
      const name = tableSchemas[table].partitionKey.name;
      const wanted = keys.map((key) => marshall({ [name]: key }));
      return (await itemsOf(store, table, wanted)).map(rawRow);
    },
    async grants(account, limit) {
      const { Items = [], LastEvaluatedKey } = await query({
        table: 'grants',
        KeyConditionExpression: 'account = :account',
        ExpressionAttributeValues: marshall({ ':account': account }),
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
        ExpressionAttributeValues: marshall({ ':id': id, ':from': `day#${from}`, ':to': 'day#~' }),
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
        ExpressionAttributeValues: marshall({ ':account': account, ':before': before ?? grantPrefix }),
        ScanIndexForward: false,
        Limit: limit,
      });
      const rows = Items.map((item) => reading(item, `${account} ${item['id']?.S}`, ledgerRowOf));
      return { rows, next: LastEvaluatedKey && Items.at(-1)?.['id']?.S };
    },
    async health() {
      const Key = marshall({ id: cooldownsId });
      const { Item } = await explained(
        client.send(new GetItemCommand({ TableName: nameOf('runtime'), Key })),
      );
      return imageOf(Item && unmarshall(Item)).entries;
    },
  };
}

async function foundRows(
  { client, explained }: Store,
  TableName: string,
  { table, after, where, limit }: RowsWanted,
): Promise<RowsFound> {
  const key = tableSchemas[table].partitionKey.name;
  const rows: RawRow[] = [];
  let start = after === undefined ? undefined : marshall({ [key]: after });
  // What is filtered out is gone through as well, but not sent.
  const requestsMax = where ? scansMax : 1;
  const ConsistentRead = where !== undefined && 'is' in where;
  const few = where === undefined && limit <= fewMax ? { Limit: limit } : {};
  for (let asked = 0; asked < requestsMax; asked += 1) {
    const input = { TableName, ExclusiveStartKey: start, ...filterOf(where), ...few, ConsistentRead };
    const command = new ScanCommand(input);
    const reply: ScanCommandOutput = await explained(client.send(command));
    rows.push(...(reply.Items ?? []).map(rawRow));
    start = reply.LastEvaluatedKey;
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
    ExpressionAttributeValues: marshall({ ':value': value }),
  };
}

/** Numbers out of range become what `Number` makes of them, as where rows are written. */
const rawRow = (item: Attributes): RawRow => unmarshall(item, { wrapNumbers: Number });
