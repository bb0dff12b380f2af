import { paginateScan, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { QuotaScan } from '../../../relay/ports/quota-store.ts';
import { readQuota } from '../../table-streams/table-stream-records.ts';
import { physicalTableName } from '../../../tables/table-names.ts';

/** Reads `quotas` page by page; an item is consistent in itself, which is all that a close needs. */
export function dynamoQuotaScan(client: DynamoDBClient, stack: string): QuotaScan {
  const input = {
    TableName: physicalTableName(stack, 'quotas'),
    ConsistentRead: true,
    FilterExpression: 'size(#open) > :none',
    ExpressionAttributeNames: { '#open': 'open' },
    ExpressionAttributeValues: { ':none': { N: '0' } },
  };
  return {
    async *open() {
      for await (const { Items = [] } of paginateScan({ client }, input))
        yield* Items.map((item) => ({ account: item['account']?.S ?? '', read: () => readQuota(item) }));
    },
  };
}
