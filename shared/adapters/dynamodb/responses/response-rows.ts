/** What operators see and delete of the table `responses`. Must read no content but that of one response that is named. */
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import type { ResponseRows, StoredRow } from '../../../operate/operator-ports.ts';
import { physicalTableName } from '../../../tables/table-names.ts';
import { storeCall } from '../table-client.ts';
import type { Store } from '../operator-store.ts';
import { dynamoResponseStore } from './response-store.ts';
import { placeholders, removedStatus, removeRest, type ResponseTable } from './response-items.ts';

const attributes = ['id', 'bytes', 'expires', 'status'] as const;

export function dynamoResponseRows({ tables, target }: Store, clock: { now(): number }): ResponseRows {
  const now = (): number => Math.floor(clock.now() / 1000);
  const table = { client: tables, name: physicalTableName(target.stack, 'responses'), now };
  const store = dynamoResponseStore(table);
  /** Without a mark: operators may write no item here, and what they name was written long ago. */
  const removeFound = async (key: { account: string; id: string }): Promise<boolean> => {
    const known = await store.heads(key.account, [key.id]);
    const input = { TableName: table.name, Key: marshall(key) };
    if (known.size > 0) await storeCall(() => table.client.call('DeleteItem', input));
    await removeRest(table, key);
    return known.size > 0;
  };
  return {
    head: async (account, id) => (await store.heads(account, [id])).get(id),
    read: async (account, id) => (await store.read(account, [id])).get(id),
    remove: (account, id) => removeFound({ account, id }),
    async *rows(account) {
      let after: Record<string, AttributeValue> | undefined;
      do {
        const page = await pageOf(table, account, after);
        yield page.rows;
        after = page.next;
      } while (after);
    },
  };
}

async function pageOf(
  { client, name }: ResponseTable,
  account: string,
  after: Record<string, AttributeValue> | undefined,
): Promise<{ rows: StoredRow[]; next: Record<string, AttributeValue> | undefined }> {
  const { Items = [], LastEvaluatedKey } = await storeCall(() =>
    client.call('Query', {
      TableName: name,
      ConsistentRead: true,
      KeyConditionExpression: '#account = :account',
      ExpressionAttributeNames: placeholders('account', ...attributes),
      ExpressionAttributeValues: { ':account': { S: account } },
      ProjectionExpression: attributes.map((each) => `#${each}`).join(', '),
      ...(after && { ExclusiveStartKey: after }),
    }),
  );
  const rows = Items.map((item) => unmarshall(item))
    .filter(({ status }) => status !== removedStatus)
    .map(({ id, bytes, expires }) => ({
      id: String(id),
      bytes: Number(bytes ?? 0),
      expires: Number(expires ?? 0),
    }));
  return { rows, next: LastEvaluatedKey };
}
