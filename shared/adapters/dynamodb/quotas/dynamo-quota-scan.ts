/** All parts of accounts with open reservations, for the sweeper. */
import { paginateScan, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { QuotaScan } from '../../../relay/ports/stores/quota-store.ts';
import { partOf } from './quota-attributes.ts';
import { readQuota } from './quota-attributes.ts';
import { physicalTableName } from '../../../tables/table-names.ts';

const hasOpenEntries = 'size(#open) > :none';

/**
 * Reads page by page. Pages are read at different times, but a close only needs each item to be consistent.
 */
export function dynamoQuotaScan(client: DynamoDBClient, stack: string): QuotaScan {
  const input = {
    TableName: physicalTableName(stack, 'quotas'),
    ConsistentRead: true,
    FilterExpression: hasOpenEntries,
    ExpressionAttributeNames: { '#open': 'open' },
    ExpressionAttributeValues: { ':none': { N: '0' } },
  };
  return {
    async *open() {
      for await (const { Items = [] } of paginateScan({ client }, input))
        for (const item of Items) yield { ...partOf(item), read: () => readQuota(item) };
    },
  };
}
