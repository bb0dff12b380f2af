/** An account's item, ledger rows and sums of its days, as its own key sees them. */
import type { QueryCommandInput } from '@aws-sdk/client-dynamodb';
import type { AccountReader } from '../../relay/ports/money-stores.ts';
import { grantPrefix, latePrefix } from '../../billing/ledger-row.ts';
import { accountId } from '../../billing/daily-keys.ts';
import { dailySumOf } from './daily-sums.ts';
import { closeRowOf, grantRowOf } from './ledger-store.ts';
import {
  attributesOf,
  type Attributes,
  itemPages,
  storeCall,
  type TableClient,
  readItems,
} from './table-client.ts';
import { readWhole } from './quotas/whole-account.ts';
import { physicalTableName } from '../../tables/table-names.ts';
import type { AccountRows } from '../../relay/ports/config-store.ts';

export function dynamoAccountReader(client: TableClient, stack: string): AccountReader {
  const query = (
    table: 'ledger' | 'daily',
    KeyConditionExpression: string,
    values: Record<string, string>,
  ): QueryCommandInput => ({
    TableName: physicalTableName(stack, table),
    KeyConditionExpression,
    ExpressionAttributeValues: attributesOf(values),
  });
  const newest = async (input: QueryCommandInput, Limit: number): Promise<Attributes[]> => {
    const page = { ...input, ScanIndexForward: false, Limit };
    return (await storeCall(() => client.call('Query', page))).Items ?? [];
  };
  const all = async (account: string, prefix: string): Promise<Attributes[]> => {
    const values = { ':account': account, ':prefix': prefix };
    const input = query('ledger', 'account = :account AND begins_with(id, :prefix)', values);
    return (await Array.fromAsync(itemPages(client, 'Query', input))).flat();
  };
  return {
    async quota(account) {
      return storeCall(() => readWhole({ client, TableName: physicalTableName(stack, 'quotas') }, account));
    },
    async requests(account, beforeId, limit) {
      const values = { ':account': account, ':before': beforeId };
      const rows = await newest(query('ledger', 'account = :account AND id < :before', values), limit);
      return rows.map(closeRowOf);
    },
    async grants(account) {
      return (await all(account, grantPrefix)).map(grantRowOf);
    },
    async late(account) {
      return (await all(account, latePrefix)).map(closeRowOf);
    },
    async days(account, from, limit) {
      // `~` sorts after the digits of a day.
      const values = { ':id': accountId(account), ':from': `day#${from}`, ':to': 'day#~' };
      const days = await newest(query('daily', 'id = :id AND period BETWEEN :from AND :to', values), limit);
      return days.map(dailySumOf);
    },
  };
}

// Which accounts have a row, by their keys alone.

export const dynamoAccountRows = (client: TableClient, stack: string): AccountRows => ({
  async existing(names) {
    const keys = names.map((account) => attributesOf({ account }));
    const items = await readItems(client, physicalTableName(stack, 'accounts'), keys, {
      attributes: ['account'],
    });
    return new Set(items.map(({ account }) => account?.S ?? ''));
  },
});
