/** Items of `quotas` with open reservations, for the sweeper: by their keys, or page by page. */
import { BatchGetItemCommand, ScanCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { QuotaScan, ScannedQuota } from '../../../relay/ports/stores/quota-store.ts';
import { StoreBusy } from '../../../relay/ports/stores/store-errors.ts';
import type { Attributes } from '../attributes.ts';
import { storeCall } from '../dynamo-client.ts';
import { partOf, readQuota, textAttribute } from './quota-attributes.ts';
import { physicalTableName } from '../../../tables/table-names.ts';

const hasOpenEntries = 'size(#open) > :none';
/** DynamoDB's limit. */
const keysMax = 100;

/** Items are read at different times, but a close only needs each item to be consistent. */
export function dynamoQuotaScan(client: DynamoDBClient, stack: string): QuotaScan {
  const TableName = physicalTableName(stack, 'quotas');

  const readSome = async (items: readonly string[]): Promise<ScannedQuota[]> => {
    const Keys = items.map((account) => ({ account: textAttribute(account) }));
    const command = new BatchGetItemCommand({
      RequestItems: { [TableName]: { Keys, ConsistentRead: true } },
    });
    const { Responses, UnprocessedKeys } = await storeCall(() => client.send(command));
    const left = UnprocessedKeys?.[TableName]?.Keys?.flatMap(({ account }) => account?.S ?? []) ?? [];
    const read = (Responses?.[TableName] ?? []).map(scanned);
    if (left.length === items.length) throw new StoreBusy('The store is busy.');
    return left.length === 0 ? read : [...read, ...(await readSome(left))];
  };

  return {
    async *read(items) {
      for (let start = 0; start < items.length; start += keysMax)
        yield* await readSome(items.slice(start, start + keysMax));
    },
    async open(after) {
      const command = new ScanCommand({
        TableName,
        ConsistentRead: true,
        FilterExpression: hasOpenEntries,
        ExpressionAttributeNames: { '#open': 'open' },
        ExpressionAttributeValues: { ':none': { N: '0' } },
        ...(after !== undefined && { ExclusiveStartKey: { account: textAttribute(after) } }),
      });
      const { Items = [], LastEvaluatedKey } = await storeCall(() => client.send(command));
      return { quotas: Items.map(scanned), next: LastEvaluatedKey?.['account']?.S };
    },
  };
}

const scanned = (item: Attributes): ScannedQuota => ({
  item: item['account']?.S ?? '',
  ...partOf(item),
  read: () => readQuota(item),
});
