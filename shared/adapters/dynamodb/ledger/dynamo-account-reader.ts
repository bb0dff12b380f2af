/**
 * An account's item, ledger rows and sums of its days. Reads amounts from wire attributes, because the document client would
 * round them.
 */
import { QueryCommand, type QueryCommandInput } from '@aws-sdk/client-dynamodb';
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';
import { type AccountReader } from '../../../relay/ports/stores/account-reader.ts';
import { grantPrefix } from '../../../billing/grant.ts';
import { latePrefix } from '../../../billing/ledger-row.ts';
import { accountId } from '../../../billing/daily/daily-keys.ts';
import { dailySumOf } from '../daily-attributes.ts';
import { closeRowOf, grantRowOf } from '../ledger-attributes.ts';
import type { Attributes } from '../attributes.ts';
import { storeCall } from '../dynamo-client.ts';
import { attributesOn } from '../sdk-client.ts';
import { readWhole } from '../quotas/whole-account.ts';
import { physicalTableName } from '../../../tables/table-names.ts';

export function dynamoAccountReader(documentClient: DynamoDBDocumentClient, stack: string): AccountReader {
  const client = attributesOn(documentClient);
  const ledger = physicalTableName(stack, 'ledger');

  const query = async (
    account: string,
    ids: { condition: string; values: Record<string, string> },
    more: Partial<QueryCommandInput>,
  ): Promise<{ items: Attributes[]; next: Attributes | undefined }> => {
    const command = new QueryCommand({
      TableName: ledger,
      KeyConditionExpression: `account = :account AND ${ids.condition}`,
      ExpressionAttributeValues: marshall({ ':account': account, ...ids.values }),
      ...more,
    });
    const page = await storeCall(() => client.send(command));
    return { items: page.Items ?? [], next: page.LastEvaluatedKey };
  };

  const all = async (account: string, prefix: string): Promise<Attributes[]> => {
    const ids = { condition: 'begins_with(id, :prefix)', values: { ':prefix': prefix } };
    const items: Attributes[] = [];
    let from: Attributes | undefined;
    do {
      const page = await query(account, ids, { ExclusiveStartKey: from });
      items.push(...page.items);
      from = page.next;
    } while (from);
    return items;
  };

  return {
    async quota(account) {
      return storeCall(() => readWhole({ client, TableName: physicalTableName(stack, 'quotas') }, account));
    },
    async requests(account, beforeId, limit) {
      const ids = { condition: 'id < :before', values: { ':before': beforeId } };
      const newestFirst = { ScanIndexForward: false, Limit: limit };
      return (await query(account, ids, newestFirst)).items.map(closeRowOf);
    },
    async grants(account) {
      return (await all(account, grantPrefix)).map(grantRowOf);
    },
    async late(account) {
      return (await all(account, latePrefix)).map(closeRowOf);
    },
    async days(account, from, limit) {
      const command = new QueryCommand({
        TableName: physicalTableName(stack, 'daily'),
        KeyConditionExpression: 'id = :id AND period BETWEEN :from AND :to',
        // `~` sorts after the digits of a day.
        ExpressionAttributeValues: marshall({
          ':id': accountId(account),
          ':from': `day#${from}`,
          ':to': 'day#~',
        }),
        ScanIndexForward: false,
        Limit: limit,
      });
      return ((await storeCall(() => client.send(command))).Items ?? []).map(dailySumOf);
    },
  };
}
