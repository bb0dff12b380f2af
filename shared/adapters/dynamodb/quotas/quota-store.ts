/**
 * The store of reservations. Each operation is one conditional write on a part of an account. The client must not
 * retry: `Reservations` decides which writes are safe to repeat.
 */
import { overdraws, refundOf, type AccountShard } from '../../../billing/quota-item.ts';
import type { QuotaStore, WriteReply } from '../../../relay/ports/money-stores.ts';
import { countersMax } from '../../../billing/shares.ts';
import { type Attributes, expressed, quotaCall, type TableClient } from '../table-client.ts';
import {
  partKey,
  emptyAttributes,
  quotaOf,
  closeExpression,
  reserveExpression,
  type Expression,
} from './quota-items.ts';
import { physicalTableName } from '../../../tables/table-names.ts';

const entries = () => import('./quota-transactions.ts');
const hasAnItem = 'attribute_exists(account)';
const hasNoItem = 'attribute_not_exists(account)';

const once = { attempts: 1 };

export function dynamoQuotaStore(client: TableClient, stack: string): QuotaStore {
  const TableName = physicalTableName(stack, 'quotas');

  const update = async (
    of: AccountShard,
    expression: Expression,
  ): Promise<WriteReply<{ updated: Attributes | undefined }>> => {
    const ReturnValuesOnConditionCheckFailure = 'ALL_OLD';
    const input = {
      TableName,
      Key: partKey(of),
      ...expression,
      ReturnValuesOnConditionCheckFailure,
    } as const;
    const reply = await quotaCall(() => client.call('UpdateItem', input, once));
    if (reply.done) return { done: true, updated: reply.reply.Attributes };
    return { done: false, item: reply.item && quotaOf(reply.item) };
  };

  const hasCounters = (account: string) => {
    const update = { ConditionExpression: hasAnItem, UpdateExpression: 'SET counters = :counters' };
    const input = {
      TableName,
      Key: partKey({ account }),
      ...expressed(update, { ':counters': countersMax }),
    };
    return quotaCall(() => client.call('UpdateItem', input, once));
  };

  const transactions = async () => {
    const { quotaTransactions } = await entries();
    return quotaTransactions(client, stack);
  };

  return {
    async reserve(write) {
      const reply = await update(write, reserveExpression(write));
      return reply.done ? { done: true, item: quotaOf(reply.updated ?? {}) } : reply;
    },
    async close(write) {
      const reply = await update(write, closeExpression(write));
      if (reply.done || !reply.item?.open.has(write.id) || !overdraws(reply.item, -refundOf(write)))
        return reply;
      await (await transactions()).closeOverdrawn(write, reply.item.shardCount);
      return { done: true };
    },
    async create(account, part = 0) {
      // Readers of sums look for counters only where the first item says that there are some.
      if (part > 0 && !(await hasCounters(account)).done) {
        await this.create(account);
        await hasCounters(account);
      }
      const Item = emptyAttributes({ account, shard: part });
      const input = { TableName, Item, ConditionExpression: hasNoItem };
      await quotaCall(() => client.call('PutItem', input, once));
    },
    // Few calls need these, so their code is loaded by those.
    tombstone: async (write) => update(write, (await entries()).tombstoneExpression(write)),
    renew: async (write) => update(write, (await entries()).renewExpression(write)),
    read: async (account, parts, exact) => (await transactions()).read(account, parts, exact),
    move: async (write) => (await transactions()).move(write),
    chargeLate: async (charge) => (await transactions()).chargeLate(charge),
    closedAs: async (account, id, part) => (await transactions()).closedAs(account, id, part),
  };
}
