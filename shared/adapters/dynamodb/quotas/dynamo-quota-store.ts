import {
  ConditionalCheckFailedException,
  DynamoDBClient,
  PutItemCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { openEntriesMax } from '../../../billing/quota-item.ts';
import { refundOf, type CloseWrite, type ReserveWrite } from '../../../billing/quota-writes.ts';
import { StoreUnavailable, StoreBusy } from '../../../relay/ports/store-errors.ts';
import { type ReturnedItem, type QuotaStore, type WriteReply } from '../../../relay/ports/quota-store.ts';
import { isBusy, storeCall } from '../dynamo-client.ts';
import {
  entryAttribute,
  numberAttribute,
  quotaOf,
  textAttribute,
  type Attributes,
} from './quota-attributes.ts';
import {
  closeExpression,
  reserveExpression,
  tombstoneExpression,
  type Expression,
} from './quota-expressions.ts';
import { physicalTableName } from '../../../tables/table-names.ts';

/** The reservations' store: each operation one conditional UpdateItem, tried once; the reservations decide on repeating it. */
export function dynamoQuotaStore(documentClient: DynamoDBDocumentClient, stack: string): QuotaStore {
  const client = triedOnce(documentClient);
  const TableName = physicalTableName(stack, 'quotas');

  const update = async (
    account: string,
    expression: Expression,
  ): Promise<WriteReply<{ seen: Attributes }>> => {
    const command = new UpdateItemCommand({
      TableName,
      Key: { account: textAttribute(account) },
      ...expression,
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    });
    try {
      const { Attributes: seen = {} } = await quotaCall(() => client.send(command));
      return { done: true, seen };
    } catch (error) {
      if (!(error instanceof ConditionalCheckFailedException)) throw error;
      return { done: false, item: error.Item ? quotaOf(error.Item) : undefined };
    }
  };

  return {
    async reserve(write) {
      const reply = await update(write.account, reserveExpression(write, openEntriesMax));
      return reply.done ? { done: true, returned: returnedItemOf(write, reply.seen) } : reply;
    },
    close: (write: CloseWrite) => update(write.account, closeExpression(write, refundOf(write))),
    tombstone: (account, id, entry) => update(account, tombstoneExpression(id, entryAttribute(entry))),
    async create(account) {
      const Item = emptyAttributes(account);
      const command = new PutItemCommand({
        TableName,
        Item,
        ConditionExpression: 'attribute_not_exists(account)',
      });
      await quotaCall(() => client.send(command)).catch((error: unknown) => {
        if (!(error instanceof ConditionalCheckFailedException)) throw error;
      });
    },
  };
}

/** Every map has to be there before anything is written into it: DynamoDB makes no parents. */
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

function returnedItemOf(write: ReserveWrite, seen: Attributes): ReturnedItem {
  const slot = write.slot && seen['plan']?.M?.[write.slot.key]?.N;
  // The minute comes back only when this write set it.
  const rate = write.rate && seen['rate']?.M?.[write.rate.key]?.M?.['count']?.N;
  return {
    available: BigInt(seen['available']?.N ?? '0'),
    slotCount: slot === undefined ? undefined : Number(slot),
    rateCount: rate === undefined ? undefined : Number(rate),
  };
}

async function quotaCall<Result>(call: () => Promise<Result>): Promise<Result> {
  try {
    return await storeCall(call);
  } catch (error) {
    if (error instanceof StoreUnavailable && isBusy(error.cause))
      throw new StoreBusy('The store is busy.', { cause: error });
    throw error;
  }
}

/** The same connections, but no repeats by the SDK: a caller waits, and the reservations know what is safe to repeat. */
function triedOnce(documentClient: DynamoDBDocumentClient): DynamoDBClient {
  const { region, credentials, requestHandler, endpoint } = documentClient.config;
  return new DynamoDBClient({
    region,
    credentials,
    requestHandler,
    ...(endpoint && { endpoint }),
    maxAttempts: 1,
  });
}
