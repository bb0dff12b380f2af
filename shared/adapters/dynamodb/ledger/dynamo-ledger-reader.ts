/** Reads accounts' items, ledger rows and grants for operators: consistent reads, exact numbers. */
import { tablesOn } from '../sdk-client.ts';
import type { LedgerReader, LedgerSelection } from '../../../operate/ledger-reader.ts';
import type { Reading } from '../../../operate/sum-reader.ts';
import {
  GetItemCommand,
  QueryCommand,
  paginateQuery,
  paginateScan,
  type AttributeValue,
} from '@aws-sdk/client-dynamodb';
import { dynamoBalanceReader } from './dynamo-balance-reader.ts';
import { dynamoDailyReader } from './dynamo-daily-reader.ts';
import { writtenGrantOf } from './grant-attributes.ts';
import { dynamoSumReader } from './dynamo-sum-reader.ts';
import { pages, reading } from './table-pages.ts';
import { ledgerRowOf } from '../ledger-attributes.ts';
import type { Attributes } from '../attributes.ts';
import { partOf } from '../quotas/quota-attributes.ts';
import { textAttribute } from '../quotas/quota-attributes.ts';
import { dynamoQuotaStore } from '../quotas/dynamo-quota-store.ts';
import { physicalTableName, type TableName } from '../../../tables/table-names.ts';
import { latePrefix, type LedgerRow, ledgerTimeMs } from '../../../billing/ledger-row.ts';
import { grantPrefix } from '../../../billing/grant.ts';
import { timeText } from '../../../wire/request-id.ts';
import type { Store } from '../operator-client.ts';

export function dynamoLedgerReader(store: Store): LedgerReader {
  const { client, explained, target } = store;
  const at = (table: TableName) => ({ TableName: physicalTableName(target.stack, table) });
  const get = async (table: TableName, Key: Attributes): Promise<Attributes | undefined> =>
    (await explained(client.send(new GetItemCommand({ ...at(table), Key, ConsistentRead: true })))).Item;
  const query = (table: TableName, condition: string, values: Attributes): AsyncIterable<Attributes[]> =>
    pages(
      paginateQuery(
        { client },
        {
          ...at(table),
          KeyConditionExpression: condition,
          ExpressionAttributeValues: values,
          ConsistentRead: true,
        },
      ),
      explained,
    );
  const scan = (table: TableName): AsyncIterable<Attributes[]> =>
    pages(paginateScan({ client }, { ...at(table), ConsistentRead: true }), explained);
  const daily = dynamoDailyReader(store);
  const quotas = dynamoQuotaStore(tablesOn(store.documents), target.stack);

  return {
    close: async (...given) => explained(quotas.close(...given)),
    chargeLate: async (...given) => explained(quotas.chargeLate(...given)),
    // An index has no consistent reads, but its entries are a tenth of the rows.
    ledgerAccounts: () =>
      accountsIn(pages(paginateScan({ client }, { ...at('ledger'), IndexName: 'by_id' }), explained)),
    ...dynamoBalanceReader(store),
    ...daily,
    ...dynamoSumReader(store),
    async *accounts() {
      for await (const page of scan('quotas')) {
        const first = page.map(partOf).filter(({ part }) => part === 0);
        yield first.map(({ account }) => account);
      }
    },
    async *ledger(selection) {
      for (const rows of ledgerSources(selection, query, scan))
        for await (const page of rows)
          yield page.map((item) => reading(item, rowName(item), ledgerRowOf)).filter(inTime(selection));
    },
    async request(id) {
      const account = await accountOf(store, at('ledger').TableName, id);
      const item = account && (await get('ledger', { account, id: textAttribute(id) }));
      return item && reading(item, rowName(item), ledgerRowOf);
    },
    async *grants(account) {
      const rows =
        account === undefined
          ? scan('grants')
          : query('grants', 'account = :account', { ':account': textAttribute(account) });
      for await (const page of rows) yield page.map(writtenGrantOf);
    },
  };
}

async function* accountsIn(rows: AsyncIterable<Attributes[]>): AsyncIterable<string[]> {
  for await (const page of rows) yield page.map((item) => item['account']?.S ?? '');
}

/** The account of a request's row. */
async function accountOf(
  { client, explained }: Store,
  TableName: string,
  id: string,
): Promise<AttributeValue | undefined> {
  const query = new QueryCommand({
    TableName,
    IndexName: 'by_id',
    KeyConditionExpression: 'id = :id',
    ExpressionAttributeValues: { ':id': textAttribute(id) },
  });
  const { Items } = await explained(client.send(query));
  return Items?.[0]?.['account'];
}

function ledgerSources(
  { account, fromMs, toMs }: LedgerSelection,
  query: (table: TableName, condition: string, values: Attributes) => AsyncIterable<Attributes[]>,
  scan: (table: TableName) => AsyncIterable<Attributes[]>,
): AsyncIterable<Attributes[]>[] {
  if (account === undefined) return [scan('ledger')];
  const of = { ':account': textAttribute(account) };
  // Request ids start with the time, so the query reads only the requested range. Grants and late charges have
  // other ids; they are few.
  const from = textAttribute(fromMs === undefined ? '0' : timeText(fromMs));
  const to = textAttribute(toMs === undefined ? grantPrefix : timeText(toMs));
  const requests = 'account = :account AND id BETWEEN :from AND :to';
  return [
    query('ledger', requests, { ...of, ':from': from, ':to': to }),
    ...[grantPrefix, latePrefix].map((prefix) =>
      query('ledger', 'account = :account AND begins_with(id, :prefix)', {
        ...of,
        ':prefix': textAttribute(prefix),
      }),
    ),
  ];
}

const rowName = (item: Attributes): string => `${item['account']?.S} ${item['id']?.S}`;

const inTime =
  ({ fromMs = -Infinity, toMs = Infinity }: LedgerSelection) =>
  (each: Reading<LedgerRow>): boolean => {
    if (!('row' in each)) return true;
    const time = ledgerTimeMs(each.row);
    return fromMs <= time && time < toMs;
  };
