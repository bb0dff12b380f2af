/**
 * The count of who comes to follow a response: `resp-<id>#followers` with {count, expires}, which goes when the response is
 * removed. An add whose reply was lost may count twice: no number is given twice.
 */
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import type { FollowerCount } from '../../../relay/ports/stored/follower-count.ts';
import { StoreUnavailable } from '../../../relay/ports/stores/store-errors.ts';
import { storeCall } from '../dynamo-client.ts';
import {
  getResponseItems,
  isKept,
  isResponseId,
  placeholders,
  type ResponseTable,
} from './response-items.ts';

const countId = (id: string): string => `${id}#followers`;

export const dynamoFollowerCount = (table: ResponseTable): FollowerCount => ({
  async add({ account, id }, expires) {
    if (!isResponseId(id)) throw new Error('no id of a response');
    const input = {
      TableName: table.name,
      Key: marshall({ account, id: countId(id) }),
      UpdateExpression: 'SET #expires = :expires ADD #count :one',
      ExpressionAttributeNames: placeholders('expires', 'count'),
      ExpressionAttributeValues: marshall({ ':expires': expires, ':one': 1 }),
      ReturnValues: 'UPDATED_NEW' as const,
    };
    const { Attributes } = await storeCall(() => table.client.call('UpdateItem', input));
    if (!Attributes) throw new StoreUnavailable('The store returned no count.');
    return Number(unmarshall(Attributes)['count']);
  },
  async last({ account, id }) {
    const item = (await getResponseItems(table, account, { ids: [countId(id)] })).get(countId(id));
    return isKept(item, table.now()) ? Number(item['count']) : 0;
  },
});
