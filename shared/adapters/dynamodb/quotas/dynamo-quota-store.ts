/**
 * The store of reservations. Each operation is one conditional write on a part of an account. The SDK must not
 * retry: `Reservations` decides which writes are safe to repeat.
 */
import { PutItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { refundOf, type PartOfAccount } from '../../../billing/quota-writes.ts';
import { StoreUnavailable, StoreBusy } from '../../../relay/ports/stores/store-errors.ts';
import type { QuotaStore, WriteReply } from '../../../relay/ports/stores/quota-store.ts';
import type { Attributes } from '../attributes.ts';
import { attributesOn, changedNothing, conditionalCall, type ConditionalReply } from '../dynamo-client.ts';
import { partKey } from './part-keys.ts';
import { numberAttribute, quotaOf, textAttribute } from './quota-attributes.ts';
import {
  closeExpression,
  freePlacesExpression,
  renewExpression,
  reserveExpression,
  tombstoneExpression,
  type Expression,
} from './quota-expressions.ts';
import { physicalTableName } from '../../../tables/table-names.ts';

const hasNoItem = 'attribute_not_exists(account)';

export function dynamoQuotaStore(documentClient: DynamoDBDocumentClient, stack: string): QuotaStore {
  const client = attributesOn(documentClient, 1);
  const TableName = physicalTableName(stack, 'quotas');

  const update = async (
    of: PartOfAccount,
    expression: Expression,
  ): Promise<WriteReply<{ updated: Attributes | undefined }>> => {
    const command = new UpdateItemCommand({
      TableName,
      Key: partKey(of),
      ...expression,
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    });
    const reply = await quotaCall(() => client.send(command));
    if (reply.done) return { done: true, updated: reply.reply.Attributes };
    return { done: false, item: reply.item && quotaOf(reply.item) };
  };

  return {
    async reserve(write) {
      const reply = await update(write, reserveExpression(write));
      return reply.done ? { done: true, item: quotaOf(reply.updated ?? {}) } : reply;
    },
    close: (write) => update(write, closeExpression(write, refundOf(write))),
    tombstone: (write) => update(write, tombstoneExpression(write.id, write.entry)),
    renew: (write) => update(write, renewExpression(write)),
    freePlaces: (write) => update(write, freePlacesExpression(write)),
    async create(account) {
      const Item = emptyAttributes(account);
      const command = new PutItemCommand({ TableName, Item, ConditionExpression: hasNoItem });
      await quotaCall(() => client.send(command));
    },
  };
}

/** Creates every map, because DynamoDB does not create parent maps on a write into one. */
export function emptyAttributes(account: string): Attributes {
  const zero = numberAttribute(0);
  return {
    account: textAttribute(account),
    available: zero,
    spent: zero,
    granted: zero,
    settled: zero,
    open: { M: {} },
    plan: { M: {} },
    busy: { M: {} },
    rate: { M: {} },
  };
}

async function quotaCall<Reply>(call: () => Promise<Reply>): Promise<ConditionalReply<Reply>> {
  try {
    return await conditionalCall(call);
  } catch (error) {
    if (error instanceof StoreUnavailable && changedNothing(error.cause))
      throw new StoreBusy('The store is busy.', { cause: error });
    throw error;
  }
}
