/**
 * An account's item, ledger rows and sums of its days. Reads amounts from wire attributes, because the document client would
 * round them.
 */
import { QueryCommand, type QueryCommandInput } from '@aws-sdk/client-dynamodb';
import { type DynamoDBDocumentClient, BatchGetCommand } from '@aws-sdk/lib-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';
import type { AccountReader } from '../../relay/ports/money-stores.ts';
import { grantPrefix, latePrefix } from '../../billing/ledger-row.ts';
import { accountId } from '../../billing/daily-keys.ts';
import { dailySumOf } from './daily-sums.ts';
import { closeRowOf, grantRowOf } from './ledger-store.ts';
import { type Attributes, storeCall } from './table-client.ts';
import { attributesOn } from './operator-store.ts';
import { readWhole } from './quotas/whole-account.ts';
import { physicalTableName } from '../../tables/table-names.ts';
import type { AccountRows } from '../../relay/ports/config-store.ts';

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

// Which accounts have a row, by their keys alone.

/** DynamoDB takes no more. */
const atOnceMax = 100;

export function dynamoAccountRows(client: DynamoDBDocumentClient, stack: string): AccountRows {
  const table = physicalTableName(stack, 'accounts');
  const read = async (names: string[]): Promise<string[]> => {
    const found: string[] = [];
    let asked = names.map((account) => ({ account }));
    // Each answer has at least one of them: items are small.
    while (asked.length > 0) {
      const request = { Keys: asked, ProjectionExpression: 'account', ConsistentRead: true };
      const { Responses, UnprocessedKeys } = await storeCall(() =>
        client.send(new BatchGetCommand({ RequestItems: { [table]: request } })),
      );
      found.push(...(Responses?.[table] ?? []).map(({ account }) => String(account)));
      const left = (UnprocessedKeys?.[table]?.Keys ?? []) as { account: string }[];
      if (left.length >= asked.length) throw new Error('DynamoDB returned none of the accounts');
      asked = left;
    }
    return found;
  };
  return {
    async existing(names) {
      const found = new Set<string>();
      for (let start = 0; start < names.length; start += atOnceMax)
        for (const name of await read(names.slice(start, start + atOnceMax))) found.add(name);
      return found;
    },
  };
}
