/**
 * The store of reservations. Each operation is one conditional write on the account's item. The SDK must not
 * retry: `Reservations` decides which writes are safe to repeat.
 */
import { PutItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { openEntriesMax } from '../../../billing/quota-item.ts';
import { refundOf, type CloseWrite, type ReserveWrite } from '../../../billing/quota-writes.ts';
import { StoreUnavailable, StoreBusy } from '../../../relay/ports/stores/store-errors.ts';
import {
  type ReturnedItem,
  type QuotaStore,
  type WriteReply,
} from '../../../relay/ports/stores/quota-store.ts';
import type { Attributes } from '../attributes.ts';
import { attributesOn, conditionalCall, isBusy, type ConditionalReply } from '../dynamo-client.ts';
import { entryAttribute, numberAttribute, quotaOf, textAttribute } from './quota-attributes.ts';
import {
  closeExpression,
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
    account: string,
    expression: Expression,
  ): Promise<WriteReply<{ updated: Attributes }>> => {
    const command = new UpdateItemCommand({
      TableName,
      Key: { account: textAttribute(account) },
      ...expression,
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    });
    const reply = await quotaCall(() => client.send(command));
    if (reply.done) return { done: true, updated: reply.reply.Attributes ?? {} };
    return { done: false, item: reply.item && quotaOf(reply.item) };
  };

  return {
    async reserve(write) {
      const reply = await update(write.account, reserveExpression(write, openEntriesMax));
      return reply.done ? { done: true, returned: returnedItemOf(write, reply.updated) } : reply;
    },
    close: (write: CloseWrite) => update(write.account, closeExpression(write, refundOf(write))),
    tombstone: (account, id, entry) => update(account, tombstoneExpression(id, entryAttribute(entry))),
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

function returnedItemOf(write: ReserveWrite, updated: Attributes): ReturnedItem {
  const slot = write.slot && updated['plan']?.M?.[write.slot.key]?.N;
  // DynamoDB returns the count only when this write set it.
  const rate = write.rate && updated['rate']?.M?.[write.rate.key]?.M?.['count']?.N;
  return {
    available: BigInt(updated['available']?.N ?? '0'),
    slotCount: slot === undefined ? undefined : Number(slot),
    rateCount: rate === undefined ? undefined : Number(rate),
  };
}

async function quotaCall<Reply>(call: () => Promise<Reply>): Promise<ConditionalReply<Reply>> {
  try {
    return await conditionalCall(call);
  } catch (error) {
    if (error instanceof StoreUnavailable && isBusy(error.cause))
      throw new StoreBusy('The store is busy.', { cause: error });
    throw error;
  }
}
