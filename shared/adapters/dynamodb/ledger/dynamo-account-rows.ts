/** Which accounts have a row, by their keys alone. */
import { BatchGetCommand, type DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import type { AccountRows } from '../../../relay/ports/stores/config-store.ts';
import { physicalTableName } from '../../../tables/table-names.ts';
import { storeCall } from '../dynamo-client.ts';

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
