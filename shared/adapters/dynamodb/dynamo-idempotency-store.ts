/**
 * Rows of the table `runtime`: {id, request, body, state, until, expires}. States of a row:
 *
 *     absent --claim--> running --finish--> completed, or free when nothing was charged
 *                          |                    |
 *                        until               expires (24 h after the claim)
 */
import { createHash } from 'node:crypto';
import { PutItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';
import type {
  ClaimReply,
  IdempotencyClaim,
  IdempotencyStore,
} from '../../relay/ports/stores/idempotency-store.ts';
import type { Clock } from '../../relay/ports/clock.ts';
import { conditionalCall } from './dynamo-client.ts';
import { physicalTableName } from '../../tables/table-names.ts';
import type { Attributes } from './attributes.ts';

const keptSeconds = 24 * 60 * 60;

const neverClaimed = 'attribute_not_exists(id)';
/** DynamoDB removes expired rows with a delay. */
const isExpired = '#expires < :now';
const isFree = '#state = :free';
const isCrashed = '(#state = :running AND #until < :now)';
/**
 * Needed because the SDK repeats a write whose reply was lost, and because another request may take the key
 * after a crash.
 */
const isOwnClaim = '#request = :request';

const mayClaim = [neverClaimed, isExpired, isFree, isCrashed, isOwnClaim].join(' OR ');

export function dynamoIdempotencyStore(
  client: DynamoDBDocumentClient,
  clock: Clock,
  stack: string,
): IdempotencyStore {
  const TableName = physicalTableName(stack, 'runtime');
  return {
    async claim(claim) {
      const now = Math.floor(clock.now() / 1000);
      const body = sha256(JSON.stringify(claim.body));
      const until = Math.ceil(claim.untilMs / 1000);
      const request = claim.requestId;
      const command = new PutItemCommand({
        TableName,
        Item: marshall({
          id: rowId(claim),
          request,
          body,
          state: 'running',
          until,
          expires: now + keptSeconds,
        }),
        ConditionExpression: mayClaim,
        ExpressionAttributeNames: {
          '#expires': 'expires',
          '#state': 'state',
          '#until': 'until',
          '#request': 'request',
        },
        ExpressionAttributeValues: marshall({
          ':now': now,
          ':free': 'free',
          ':running': 'running',
          ':request': request,
        }),
        ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
      });
      const reply = await conditionalCall(() => client.send(command));
      return reply.done ? { state: 'claimed' } : takenReply(reply.item, body);
    },
    async finish(claim, free) {
      const command = new UpdateItemCommand({
        TableName,
        Key: marshall({ id: rowId(claim) }),
        UpdateExpression: 'SET #state = :state',
        ConditionExpression: isOwnClaim,
        ExpressionAttributeNames: { '#state': 'state', '#request': 'request' },
        ExpressionAttributeValues: marshall({
          ':state': free ? 'free' : 'completed',
          ':request': claim.requestId,
        }),
      });
      await conditionalCall(() => client.send(command));
    },
  };
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const rowId = ({ owner, idempotencyKey }: IdempotencyClaim): string =>
  `request#${sha256(`${owner}\n${idempotencyKey}`)}`;

function takenReply(item: Attributes | undefined, body: string): ClaimReply {
  const requestId = item?.['request']?.S ?? '';
  if (item?.['body']?.S !== body) return { state: 'other_body', requestId };
  return { state: item['state']?.S === 'running' ? 'running' : 'completed', requestId };
}
