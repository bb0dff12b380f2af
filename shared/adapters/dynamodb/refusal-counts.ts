/**
 * Counts of refused and failed calls in `daily`: an item for each account and hour, which removes itself. Must never touch
 * the sums of ledger rows beside them.
 */
import type { HourOfRefusals, RefusalCounts } from '../../relay/ports/money-stores.ts';
import { physicalTableName } from '../../tables/table-names.ts';
import { type Attributes, storeCall, type TableClient } from './table-client.ts';

/** As other hours of the table. */
const keptSeconds = 3 * 24 * 60 * 60;
/** Before the name of a code, so that none is taken for another attribute. */
const prefix = 'code_';

export function dynamoRefusalCounts(client: Pick<TableClient, 'call'>, stack: string): RefusalCounts {
  const TableName = physicalTableName(stack, 'daily');
  return {
    async add({ account, hour, counts }) {
      const codes = Object.entries(counts);
      const expires = Date.parse(`${hour}:00:00Z`) / 1000 + keptSeconds;
      await storeCall(() =>
        client.call(
          'UpdateItem',
          {
            TableName,
            Key: { id: { S: idOf(account) }, period: { S: `hour#${hour}` } },
            UpdateExpression: `SET #expires = :expires ADD ${codes.map((_, index) => `#c${index} :c${index}`).join(', ')}`,
            ExpressionAttributeNames: {
              '#expires': 'expires',
              ...Object.fromEntries(codes.map(([code], index) => [`#c${index}`, prefix + code])),
            },
            ExpressionAttributeValues: {
              ':expires': { N: String(expires) },
              ...Object.fromEntries(codes.map(([, count], index) => [`:c${index}`, { N: String(count) }])),
            },
          },
          { attempts: 1 },
        ),
      );
    },
    async since(account, hour) {
      const { Items = [] } = await storeCall(() =>
        client.call('Query', {
          TableName,
          KeyConditionExpression: 'id = :id AND period >= :from',
          ExpressionAttributeValues: { ':id': { S: idOf(account) }, ':from': { S: `hour#${hour}` } },
        }),
      );
      return Items.map((item) => hourOf(account, item));
    },
  };
}

const idOf = (account: string): string => `refused#${account}`;

const hourOf = (account: string, item: Attributes): HourOfRefusals => ({
  account,
  hour: item['period']?.S?.slice('hour#'.length) ?? '',
  counts: Object.fromEntries(
    Object.entries(item).flatMap(([attribute, { N }]) =>
      attribute.startsWith(prefix) && N !== undefined ? [[attribute.slice(prefix.length), Number(N)]] : [],
    ),
  ),
});
