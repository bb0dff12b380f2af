/**
 * Stores reservations: one conditional write on one shard each. Must not retry, because `Reservations` decides which writes
 * are safe to repeat.
 */
import { overdraws, refundOf, type AccountShard } from '../../../billing/quota-item.ts';
import type { QuotaStore, WriteReply } from '../../../relay/ports/money-stores.ts';
import { countersMax } from '../../../billing/shares.ts';
import {
  type Attributes,
  buildExpressions,
  callOrThrowBusy,
  type TableClient,
  singleAttempt,
} from '../table-client.ts';
import {
  buildShardKey,
  buildEmptyQuota,
  decodeQuota,
  buildClose,
  buildReserve,
  type Expression,
} from './quota-items.ts';
import { physicalNameOf } from '../../../tables/table-names.ts';

const loadTransactions = () => import('./quota-transactions.ts');
const hasAnItem = 'attribute_exists(account)';
const hasNoItem = 'attribute_not_exists(account)';

export function createQuotaStore(client: TableClient, stack: string): QuotaStore {
  const TableName = physicalNameOf(stack, 'quotas');

  const update = async (
    of: AccountShard,
    expression: Expression,
  ): Promise<WriteReply<{ updated: Attributes | undefined }>> => {
    const Key = buildShardKey(of);
    const input = { TableName, Key, ...expression, ReturnValuesOnConditionCheckFailure: 'ALL_OLD' } as const;
    const reply = await callOrThrowBusy(() => client.call('UpdateItem', input, singleAttempt));
    if (reply.done) return { done: true, updated: reply.reply.Attributes };
    return { done: false, item: reply.item && decodeQuota(reply.item) };
  };

  const markCounters = (account: string) => {
    const update = { ConditionExpression: hasAnItem, UpdateExpression: 'SET counters = :counters' };
    const input = {
      TableName,
      Key: buildShardKey({ account }),
      ...buildExpressions(update, { ':counters': countersMax }),
    };
    return callOrThrowBusy(() => client.call('UpdateItem', input, singleAttempt));
  };

  const openTransactions = async () => {
    const { createQuotaTransactions } = await loadTransactions();
    return createQuotaTransactions(client, stack);
  };

  return {
    async reserve(write) {
      const reply = await update(write, buildReserve(write));
      return reply.done ? { done: true, item: decodeQuota(reply.updated ?? {}) } : reply;
    },
    async close(write) {
      const reply = await update(write, buildClose(write));
      if (reply.done || !reply.item?.open.has(write.id) || !overdraws(reply.item, -refundOf(write)))
        return reply;
      await (await openTransactions()).closeOverdrawn(write, reply.item.shardCount);
      return { done: true };
    },
    async create(account, shard = 0) {
      // Readers of sums look for counters only if the first item has this mark.
      if (shard > 0 && !(await markCounters(account)).done) {
        await this.create(account);
        await markCounters(account);
      }
      const Item = buildEmptyQuota({ account, shard });
      const input = { TableName, Item, ConditionExpression: hasNoItem };
      await callOrThrowBusy(() => client.call('PutItem', input, singleAttempt));
    },
    // Loaded by the few calls that need them.
    tombstone: async (write) => update(write, (await loadTransactions()).buildTombstone(write)),
    renew: async (write) => update(write, (await loadTransactions()).buildRenew(write)),
    read: async (account, count, exact) => (await openTransactions()).read(account, count, exact),
    move: async (write) => (await openTransactions()).move(write),
    chargeLate: async (charge) => (await openTransactions()).chargeLate(charge),
    closedAs: async (account, id, shard) => (await openTransactions()).closedAs(account, id, shard),
  };
}
