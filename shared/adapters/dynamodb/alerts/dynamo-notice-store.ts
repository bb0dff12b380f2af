/** Notices and the list of those that wait, in the table `runtime`. */
import { UpdateCommand, type DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import type { NoticeStore } from '../../../relay/ports/alerts/notice-store.ts';
import { physicalTableName } from '../../../tables/table-names.ts';
import { conditionalCall } from '../dynamo-client.ts';
import { tablesOn } from '../sdk-client.ts';
import { getItems } from '../runtime/runtime-items.ts';
import { noticeId, noticeOf, waitingId } from './alert-items.ts';

const isTry = 'attribute_exists(id) AND tries = :tries';

/** The list is one item with an attribute for each notice, because a set could not be written by two at once. */
export function dynamoNoticeStore(client: DynamoDBDocumentClient, stack: string): NoticeStore {
  const name = physicalTableName(stack, 'runtime');
  const update = (id: string, input: Omit<UpdateCommand['input'], 'TableName' | 'Key'>) =>
    conditionalCall(() => client.send(new UpdateCommand({ TableName: name, Key: { id }, ...input })));
  return {
    async find(id) {
      const item = (await getItems({ client: tablesOn(client), name }, [noticeId(id)])).get(noticeId(id));
      return item && noticeOf(item);
    },
    async claim(id, tries, dueMs) {
      const { done } = await update(noticeId(id), {
        UpdateExpression: 'SET tries = :next, due = :due',
        ConditionExpression: isTry,
        ExpressionAttributeValues: { ':tries': tries, ':next': tries + 1, ':due': dueMs },
      });
      return done;
    },
    async leave(id, tries, left) {
      await update(noticeId(id), {
        UpdateExpression: 'SET #left = :left',
        ConditionExpression: isTry,
        ExpressionAttributeNames: { '#left': 'left' },
        ExpressionAttributeValues: { ':tries': tries, ':left': left },
      });
    },
    async waiting() {
      const item = (await getItems({ client: tablesOn(client), name }, [waitingId])).get(waitingId) ?? {};
      return Object.keys(item).filter((attribute) => attribute !== 'id');
    },
    async await(id) {
      await update(waitingId, {
        UpdateExpression: 'SET #notice = :one',
        ExpressionAttributeNames: { '#notice': id },
        ExpressionAttributeValues: { ':one': 1 },
      });
    },
    async forget(ids) {
      for (const id of ids)
        await update(waitingId, {
          UpdateExpression: 'REMOVE #notice',
          ExpressionAttributeNames: { '#notice': id },
        });
    },
  };
}
