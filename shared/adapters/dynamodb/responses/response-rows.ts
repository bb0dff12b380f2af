/** What operators see and delete of the table `responses`. Must read no content but that of one response that is named. */
import type { ResponseRows } from '../../../operate/operator-ports.ts';
import type { Store } from '../operator-store.ts';
import { attributesOf, itemPages, storeCall, valuesOf } from '../table-client.ts';
import { placeholders, removedStatus, ResponseTable } from './response-items.ts';
import { dynamoResponseStore } from './response-store.ts';

const attributes = ['id', 'bytes', 'expires', 'status'] as const;

export function dynamoResponseRows({ tables, target }: Store, clock: { now(): number }): ResponseRows {
  const table = new ResponseTable({ client: tables, clock, stack: target.stack });
  const store = dynamoResponseStore(table);
  return {
    head: async (account, id) => (await store.heads(account, [id])).get(id),
    read: async (account, id) => (await store.read(account, [id])).get(id),
    /** Without a mark: operators may write no item here, and what they name was written long ago. */
    async remove(account, id) {
      const isThere = (await store.heads(account, [id])).size > 0;
      const input = { TableName: table.name, Key: attributesOf({ account, id }) };
      if (isThere) await storeCall(() => tables.call('DeleteItem', input));
      await table.removeRest({ account, id });
      return isThere;
    },
    async *rows(account) {
      const pages = itemPages(tables, 'Query', {
        TableName: table.name,
        ConsistentRead: true,
        KeyConditionExpression: '#account = :account',
        ExpressionAttributeNames: placeholders('account', ...attributes),
        ExpressionAttributeValues: attributesOf({ ':account': account }),
        ProjectionExpression: attributes.map((each) => `#${each}`).join(', '),
      });
      for await (const page of pages)
        yield page
          .map(valuesOf)
          .filter(({ status }) => status !== removedStatus)
          .map(({ id, bytes, expires }) => ({
            id: String(id),
            bytes: Number(bytes ?? 0),
            expires: Number(expires ?? 0),
          }));
    },
  };
}
