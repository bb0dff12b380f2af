import {
  DynamoDBClient,
  GetItemCommand,
  QueryCommand,
  type QueryCommandInput,
} from '@aws-sdk/client-dynamodb';
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { type AccountReader } from '../../../relay/ports/account-reader.ts';
import { grantPrefix } from '../../../billing/grant.ts';
import { closeRowOf, grantRowOf } from './ledger-attributes.ts';
import { storeCall } from '../dynamo-client.ts';
import { quotaOf, textAttribute, type Attributes } from '../quotas/quota-attributes.ts';
import { physicalTableName } from '../../../tables/table-names.ts';

/** Reads an account's item and ledger with amounts as DynamoDB has them: the document client would round them. */
export function dynamoAccountReader(documentClient: DynamoDBDocumentClient, stack: string): AccountReader {
  const client = plainClient(documentClient);
  const ledger = physicalTableName(stack, 'ledger');

  const query = async (
    account: string,
    ids: string,
    values: Attributes,
    more: Partial<QueryCommandInput>,
  ): Promise<{ items: Attributes[]; next: Attributes | undefined }> => {
    const command = new QueryCommand({
      TableName: ledger,
      KeyConditionExpression: `account = :account AND ${ids}`,
      ExpressionAttributeValues: { ':account': textAttribute(account), ...values },
      ...more,
    });
    const page = await storeCall(() => client.send(command));
    return { items: page.Items ?? [], next: page.LastEvaluatedKey };
  };

  return {
    async quota(account) {
      const command = new GetItemCommand({
        TableName: physicalTableName(stack, 'quotas'),
        Key: { account: textAttribute(account) },
        // Whoever looks right after a call wants to see that call.
        ConsistentRead: true,
      });
      const { Item } = await storeCall(() => client.send(command));
      return Item && quotaOf(Item);
    },
    async requests(account, beforeId, limit) {
      const values = { ':before': textAttribute(beforeId) };
      const newestFirst = { ScanIndexForward: false, Limit: limit };
      return (await query(account, 'id < :before', values, newestFirst)).items.map(closeRowOf);
    },
    async grants(account) {
      const values = { ':prefix': textAttribute(grantPrefix) };
      const items: Attributes[] = [];
      let from: Attributes | undefined;
      do {
        const page = await query(account, 'begins_with(id, :prefix)', values, { ExclusiveStartKey: from });
        items.push(...page.items);
        from = page.next;
      } while (from);
      return items.map(grantRowOf);
    },
  };
}

/** The same connections without the conversion to JavaScript's values. */
function plainClient(documentClient: DynamoDBDocumentClient): DynamoDBClient {
  const { region, credentials, requestHandler, endpoint, maxAttempts } = documentClient.config;
  return new DynamoDBClient({
    region,
    credentials,
    requestHandler,
    maxAttempts,
    ...(endpoint && { endpoint }),
  });
}
