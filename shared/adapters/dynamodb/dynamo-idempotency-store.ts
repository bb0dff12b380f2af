import { createHash } from 'node:crypto';
import { ConditionalCheckFailedException, PutItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import type { ClaimReply, IdempotencyClaim, IdempotencyStore } from '../../relay/ports/idempotency-store.ts';
import type { Clock } from '../../relay/ports/clock.ts';
import { storeCall } from './dynamo-client.ts';
import { numberAttribute, textAttribute, type Attributes } from './quotas/quota-attributes.ts';
import { physicalTableName } from '../../tables/table-names.ts';

const keptSeconds = 24 * 60 * 60;
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const rowId = ({ owner, idempotencyKey }: IdempotencyClaim): string =>
  `request#${sha256(`${owner}\n${idempotencyKey}`)}`;

/** Rows of the table `runtime`: {id, request, body, state: running | completed | free, until, expires}. */
export function dynamoIdempotencyStore(
  client: DynamoDBDocumentClient,
  clock: Clock,
  stack: string,
): IdempotencyStore {
  const TableName = physicalTableName(stack, 'runtime');
  return {
    async claim(claim) {
      const nowSeconds = Math.floor(clock.now() / 1000);
      const body = sha256(JSON.stringify(claim.body));
      const command = new PutItemCommand({
        TableName,
        Item: {
          id: textAttribute(rowId(claim)),
          request: textAttribute(claim.requestId),
          body: textAttribute(body),
          state: textAttribute('running'),
          until: numberAttribute(Math.ceil(claim.untilMs / 1000)),
          expires: numberAttribute(nowSeconds + keptSeconds),
        },
        // DynamoDB removes expired rows late, so their time is looked at here too.
        ConditionExpression:
          'attribute_not_exists(id) OR #expires < :now OR #state = :free OR (#state = :running AND #until < :now) OR #request = :request',
        ExpressionAttributeNames: {
          '#expires': 'expires',
          '#state': 'state',
          '#until': 'until',
          '#request': 'request',
        },
        ExpressionAttributeValues: {
          ':now': numberAttribute(nowSeconds),
          ':free': textAttribute('free'),
          ':running': textAttribute('running'),
          ':request': textAttribute(claim.requestId),
        },
        ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
      });
      try {
        await storeCall(() => client.send(command));
        return { state: 'claimed' };
      } catch (error) {
        if (error instanceof ConditionalCheckFailedException) return takenReply(error.Item, body);
        throw error;
      }
    },
    async finish(claim, free) {
      const command = new UpdateItemCommand({
        TableName,
        Key: { id: textAttribute(rowId(claim)) },
        UpdateExpression: 'SET #state = :state',
        // Only its own: after a crash somebody else may have taken the key.
        ConditionExpression: '#request = :request',
        ExpressionAttributeNames: { '#state': 'state', '#request': 'request' },
        ExpressionAttributeValues: {
          ':state': textAttribute(free ? 'free' : 'completed'),
          ':request': textAttribute(claim.requestId),
        },
      });
      await storeCall(() => client.send(command)).catch((error: unknown) => {
        if (!(error instanceof ConditionalCheckFailedException)) throw error;
      });
    },
  };
}

function takenReply(item: Attributes | undefined, body: string): ClaimReply {
  const requestId = item?.['request']?.S ?? '';
  if (item?.['body']?.S !== body) return { state: 'other_body', requestId };
  return { state: item['state']?.S === 'running' ? 'running' : 'completed', requestId };
}
