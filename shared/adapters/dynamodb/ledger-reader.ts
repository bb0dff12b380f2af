/** Reads accounts' items, ledger rows and grants for operators: consistent reads, exact numbers. */
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { LedgerReader, LedgerSelection, Reading } from '../../operate/operator-ports.ts';
import { dynamoDailyReader, dynamoSumReader } from './daily-sums.ts';
import { writtenGrantOf } from './grant-store.ts';
import { reading, type Store } from './operator-store.ts';
import { ledgerRowOf } from './ledger-store.ts';
import { type Attributes, itemPages, readItems } from './table-client.ts';
import { partOf, textAttribute, partKey, partName, quotaOf } from './quotas/quota-items.ts';
import { dynamoQuotaStore } from './quotas/quota-store.ts';
import { physicalTableName, type TableName } from '../../tables/table-names.ts';
import { latePrefix, type LedgerRow, ledgerTimeMs, grantPrefix } from '../../billing/ledger-row.ts';
import { timeText } from '../../wire/ids.ts';
import { wholeOf, type WholeAccount } from '../../billing/shards.ts';
import { partsOf, readWhole } from './quotas/whole-account.ts';
import type { QuotaItem } from '../../billing/quota-item.ts';

export function dynamoLedgerReader(store: Store): LedgerReader {
  const { tables, target } = store;
  const at = (table: TableName) => ({ TableName: physicalTableName(target.stack, table) });
  const get = async (table: TableName, Key: Attributes): Promise<Attributes | undefined> =>
    (await tables.call('GetItem', { ...at(table), Key, ConsistentRead: true })).Item;
  const query = (table: TableName, condition: string, values: Attributes): AsyncIterable<Attributes[]> =>
    itemPages(tables, 'Query', {
      ...at(table),
      KeyConditionExpression: condition,
      ExpressionAttributeValues: values,
      ConsistentRead: true,
    });
  const scan = (table: TableName): AsyncIterable<Attributes[]> =>
    itemPages(tables, 'Scan', { ...at(table), ConsistentRead: true });
  const quotas = dynamoQuotaStore(tables, target.stack);

  return {
    close: (...given) => quotas.close(...given),
    chargeLate: (...given) => quotas.chargeLate(...given),
    // An index has no consistent reads, but its entries are a tenth of the rows.
    ledgerAccounts: () => accountsIn(itemPages(tables, 'Scan', { ...at('ledger'), IndexName: 'by_id' })),
    ...dynamoBalanceReader(store),
    ...dynamoDailyReader(store),
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
  { tables }: Store,
  TableName: string,
  id: string,
): Promise<AttributeValue | undefined> {
  const { Items } = await tables.call('Query', {
    TableName,
    IndexName: 'by_id',
    KeyConditionExpression: 'id = :id',
    ExpressionAttributeValues: { ':id': textAttribute(id) },
  });
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

// Reads the items of accounts for operators: one account, or many at once. A part that cannot be read is said.

function dynamoBalanceReader({ tables, target }: Store): Pick<LedgerReader, 'quota' | 'quotas'> {
  const TableName = physicalTableName(target.stack, 'quotas');
  return {
    quota: (account) =>
      readWhole({ client: tables, TableName }, account).then((row) => row && { row }, unreadable(account)),
    async quotas(accounts) {
      const keys = [...new Set(accounts)].map((account) => partKey({ account }));
      const items = await readItems(tables, TableName, keys);
      const found = items.map((item) => reading(item, partOf(item).account, firstOf));
      const others = found.flatMap((each) => ('row' in each ? each.row.others : []));
      const more = await readItems(tables, TableName, others.map(partKey));
      const parts = new Map(more.map((item) => [item['account']?.S ?? '', item]));
      return found.map((each) => ('row' in each ? wholeReading(each.row, parts) : each));
    },
  };
}

/** An account's first part, and the names of the others. */
interface FirstPart {
  first: QuotaItem;
  others: { account: string; part: number }[];
}

function firstOf(item: Attributes): FirstPart {
  const first = quotaOf(item);
  return { first, others: partsOf(first.account, first.made).slice(1) };
}

/** The parts are not of one moment: what moves between them meanwhile shows as `moved`. `quota` reads one account exactly. */
function wholeReading(
  { first, others }: FirstPart,
  parts: ReadonlyMap<string, Attributes>,
): Reading<WholeAccount> {
  const all: [QuotaItem, ...QuotaItem[]] = [first];
  for (const other of others) {
    const name = partName(other);
    const item = parts.get(name);
    if (!item)
      return { key: first.account, problem: `quotas: the part ${name} is missing, so the sums are unknown` };
    const read = reading(item, first.account, quotaOf);
    if ('problem' in read) return read;
    all.push(read.row);
  }
  return { row: wholeOf(all) };
}

/** An item that cannot be read is said, any other error is thrown. */
const unreadable =
  (account: string) =>
  (error: unknown): { key: string; problem: string } => {
    if (!(error instanceof Error && error.message.startsWith('quotas: '))) throw error;
    return { key: account, problem: error.message };
  };
