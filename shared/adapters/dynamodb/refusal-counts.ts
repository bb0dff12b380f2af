/**
 * Counts refused and failed calls in `daily`, an expiring item per account and hour. Must never touch the sums of ledger
 * rows there.
 */
import type { RefusalCounts } from '../../relay/ports/money-stores.ts';
import { attributesOf, buildExpressions, Table, type TableClient, singleAttempt } from './table-client.ts';

const keptSeconds = 3 * 24 * 60 * 60;
/** Keeps codes apart from other attributes. */
const prefix = 'code_';
const idOf = (account: string): string => `refused#${account}`;

export function createRefusalCounts(client: TableClient, stack: string): RefusalCounts {
  const table = new Table(client, stack, 'daily');
  return {
    async add({ account, hour, counts }) {
      const codes = Object.entries(counts);
      const expires = Date.parse(`${hour}:00:00Z`) / 1000 + keptSeconds;
      const adds = codes.map((_, index) => `#c${index} :c${index}`).join(', ');
      const write = buildExpressions(
        { UpdateExpression: `SET #expires = :expires ADD ${adds}` },
        {
          ':expires': expires,
          ...Object.fromEntries(codes.map(([, count], index) => [`:c${index}`, count])),
        },
        Object.fromEntries(codes.map(([code], index) => [`#c${index}`, prefix + code])),
      );
      const input = { ...table.keyInput({ id: idOf(account), period: `hour#${hour}` }), ...write };
      await client.call('UpdateItem', input, singleAttempt);
    },
    async since(account, hour) {
      const { Items = [] } = await table.query({
        KeyConditionExpression: 'id = :id AND period >= :from',
        ExpressionAttributeValues: attributesOf({ ':id': idOf(account), ':from': `hour#${hour}` }),
      });
      return Items.map((item) => ({
        account,
        hour: item['period']?.S?.slice('hour#'.length) ?? '',
        counts: Object.fromEntries(
          Object.entries(item).flatMap(([name, { N }]) =>
            name.startsWith(prefix) && N !== undefined ? [[name.slice(prefix.length), Number(N)]] : [],
          ),
        ),
      }));
    },
  };
}
