/**
 * The store of reservations. Each operation is one conditional write on a part of an account. The SDK must not
 * retry: `Reservations` decides which writes are safe to repeat.
 */
import { PutItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { refundOf, type PartOfAccount } from '../../../billing/quota-writes.ts';
import type { QuotaStore, WriteReply } from '../../../relay/ports/stores/quota-store.ts';
import type { Attributes } from '../attributes.ts';
import { attributesOn, quotaCall } from '../dynamo-client.ts';
import { partKey } from './quota-attributes.ts';
import { emptyAttributes, quotaOf } from './quota-attributes.ts';
import { closeExpression, reserveExpression, type Expression } from './quota-expressions.ts';
import { physicalTableName } from '../../../tables/table-names.ts';

const entries = () => import('./entry-expressions.ts');
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

  const transactions = async () => {
    const { quotaTransactions } = await import('./quota-transactions.ts');
    return quotaTransactions(client, stack);
  };

  return {
    async reserve(write) {
      const reply = await update(write, reserveExpression(write));
      return reply.done ? { done: true, item: quotaOf(reply.updated ?? {}) } : reply;
    },
    close: (write) => update(write, closeExpression(write, refundOf(write))),
    async create(account) {
      const Item = emptyAttributes({ account });
      const command = new PutItemCommand({ TableName, Item, ConditionExpression: hasNoItem });
      await quotaCall(() => client.send(command));
    },
    // Few calls need these, so their code is loaded by those.
    tombstone: async (write) => update(write, (await entries()).tombstoneExpression(write)),
    renew: async (write) => update(write, (await entries()).renewExpression(write)),
    freePlaces: async (write) => update(write, (await entries()).freePlacesExpression(write)),
    dropCounts: async (write) => update(write, (await entries()).dropCountsExpression(write)),
    read: async (account, parts, exact) => (await transactions()).read(account, parts, exact),
    move: async (write) => (await transactions()).move(write),
    chargeLate: async (charge) => (await transactions()).chargeLate(charge),
    closedAs: async (account, id) => (await transactions()).closedAs(account, id),
  };
}
