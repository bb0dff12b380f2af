/** Marks of alerts in the table `runtime`. A mark is written only as it was read, in one transaction with its notice. */
import { TransactWriteCommand, UpdateCommand, type DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import type { AlertMark, AlertStore } from '../../../relay/ports/alerts/alert-store.ts';
import { physicalTableName } from '../../../tables/table-names.ts';
import { conditionalCall } from '../dynamo-client.ts';
import { transactionCall } from '../dynamo-transactions.ts';
import { tablesOn } from '../sdk-client.ts';
import { getItems } from '../runtime/runtime-items.ts';
import { markId, markOf, noticeItem } from './alert-items.ts';

const isAbsent = 'attribute_not_exists(id)';
const isAsSeen = 'changes = :seen AND #open = :was';

export function dynamoAlertStore(client: DynamoDBDocumentClient, stack: string): AlertStore {
  const TableName = physicalTableName(stack, 'runtime');
  return {
    async marks(causes) {
      const ids = new Map(causes.map((cause) => [markId(cause), cause]));
      const items = await getItems({ client: tablesOn(client), name: TableName }, [...ids.keys()]);
      return new Map([...items].map(([id, item]) => [ids.get(id) ?? '', markOf(item)]));
    },
    async raise({ cause, seen, notice, expires }) {
      const mark = { id: markId(cause), open: true, changes: (seen?.changes ?? 0) + 1, notice: notice.id };
      const put = { TableName, Item: { ...mark, ...(expires !== undefined && { expires }) } };
      const TransactItems = [
        { Put: { ...put, ...(seen ? asSeen(seen) : { ConditionExpression: isAbsent }) } },
        { Put: { TableName, Item: noticeItem(notice), ConditionExpression: isAbsent } },
      ];
      const reply = await transactionCall(() => client.send(new TransactWriteCommand({ TransactItems })));
      if (!reply.done && reply.invalid) throw reply.error;
      return reply.done;
    },
    async clear(cause, seen) {
      const { ConditionExpression, ExpressionAttributeNames, ExpressionAttributeValues } = asSeen(seen);
      const command = new UpdateCommand({
        TableName,
        Key: { id: markId(cause) },
        UpdateExpression: 'SET #open = :open, changes = changes + :one',
        ConditionExpression,
        ExpressionAttributeNames,
        ExpressionAttributeValues: { ...ExpressionAttributeValues, ':open': false, ':one': 1 },
      });
      return (await conditionalCall(() => client.send(command))).done;
    },
  };
}

const asSeen = ({ open, changes }: AlertMark) => ({
  ConditionExpression: isAsSeen,
  ExpressionAttributeNames: { '#open': 'open' },
  ExpressionAttributeValues: { ':seen': changes, ':was': open },
});
