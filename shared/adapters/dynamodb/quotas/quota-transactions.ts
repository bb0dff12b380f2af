/**
 * Writes of reservations that few calls need: over several shards, with the ledger, and rare ones on one item. Transactions
 * move money and counts between shards, so sums stay.
 */
import type { TransactWriteItem, AttributeValue } from '@aws-sdk/client-dynamodb';
import type {
  CloseKind,
  CloseRecord,
  RateCount,
  CloseWrite,
  AccountShard,
  RenewWrite,
  TombstoneWrite,
} from '../../../billing/quota-item.ts';
import type { QuotaStore } from '../../../relay/ports/money-stores.ts';
import { StoreBusy } from '../../../relay/ports/store-errors.ts';
import { physicalNameOf } from '../../../tables/table-names.ts';
import {
  attributesOf,
  type Attributes,
  callOrThrowBusy,
  type TableClient,
  singleAttempt,
} from '../table-client.ts';
import { countInBudgets } from '../key-budgets.ts';
import { countInDaily } from '../daily-sums.ts';
import { readAsOfOneMoment, writeTransaction } from '../transactions.ts';
import { encodeLedgerRow } from '../ledger-store.ts';
import { buildShardCountItem } from '../key-store.ts';
import {
  buildShardKey,
  decodeQuota,
  encodeCloseRecord,
  buildEmptyQuota,
  encodeNumber,
  encodeEntry,
  rateKey,
  untilIndex,
  buildClose,
  addMetered,
  Clauses,
  hasItem,
  hasNoOverdraft,
  hasShardCount,
  markOverdraft,
  mayTake,
  type Change,
  isNotOpen,
  isOpenAs,
  type Expression,
} from './quota-items.ts';
import { bucketOf, formatLedgerPartition, type CloseRow } from '../../../billing/ledger-row.ts';
import type { ShardChange, ShardsWrite } from '../../../billing/shards.ts';

export interface QuotaTransactions extends Pick<QuotaStore, 'read' | 'move' | 'chargeLate' | 'closedAs'> {
  /** Also marks all shards as overdrawn. */
  closeOverdrawn(write: CloseWrite, shardCount: number): Promise<void>;
}

const isNotInLedger = 'attribute_not_exists(id)';

export function createQuotaTransactions(client: TableClient, stack: string): QuotaTransactions {
  const TableName = physicalNameOf(stack, 'quotas');
  const ledger = physicalNameOf(stack, 'ledger');

  /** @returns positions of the writes whose conditions failed; empty: all were done */
  const transact = async (TransactItems: TransactWriteItem[]): Promise<number[]> => {
    const reply = await callOrThrowBusy(() => writeTransaction(client, TransactItems, singleAttempt));
    if (!reply.done || reply.reply.done) return [];
    const { conditions, invalid, error } = reply.reply;
    if (invalid) throw error;
    if (conditions.length === 0) throw new StoreBusy('The transaction met another write.', { cause: error });
    return conditions;
  };

  const transactOrThrow = async (writes: TransactWriteItem[]): Promise<void> => {
    if ((await transact(writes)).length > 0) throw new StoreBusy('The account changed meanwhile.');
  };

  const readCloseKind = async (account: string, id: string, bucket: number | undefined) => {
    const Key = attributesOf({ account: formatLedgerPartition({ account, bucket }), id });
    const input = { TableName: ledger, Key, ConsistentRead: true };
    const reply = await callOrThrowBusy(() => client.call('GetItem', input, singleAttempt));
    return reply.done ? (reply.reply.Item?.['kind']?.S as CloseKind | undefined) : undefined;
  };

  const markOtherShards = ({ account, shard = 0 }: AccountShard, count: number): TransactWriteItem[] =>
    Array.from({ length: count }, (_, other) => other)
      .filter((other) => other !== shard)
      .map((other) => ({
        Update: { TableName, Key: buildShardKey({ account, shard: other }), ...buildOverdraftMark(count) },
      }));

  return {
    async read(account, count, exact) {
      const keys = Array.from({ length: count }, (_, shard) => buildShardKey({ account, shard }));
      const reply = await callOrThrowBusy(() =>
        exact
          ? readAsOfOneMoment(client, TableName, keys, singleAttempt)
          : readRoughly(client, TableName, keys),
      );
      const items = reply.done ? reply.reply : [];
      return items.flatMap((item) => (item ? decodeQuota(item) : [])).toSorted((a, b) => a.shard - b.shard);
    },
    async move(write) {
      const { account, shardCount, changes } = write;
      const items = changes.map((change): TransactWriteItem => {
        if (change.seenShardCount === undefined)
          return {
            Put: {
              TableName,
              Item: buildNewShard(write, change),
              ConditionExpression: 'attribute_not_exists(account)',
            },
          };
        const Key = buildShardKey({ account, shard: change.shard });
        return { Update: { TableName, Key, ...buildShardChange(write, change) } };
      });
      if (shardCount !== undefined)
        items.push({
          Put: {
            TableName: physicalNameOf(stack, 'runtime'),
            Item: buildShardCountItem(account, shardCount),
          },
        });
      return (await transact(items)).length === 0;
    },
    async closeOverdrawn(write, shardCount) {
      await transactOrThrow([
        { Update: { TableName, Key: buildShardKey(write), ...buildClose(write, shardCount) } },
        ...markOtherShards(write, shardCount),
      ]);
    },
    async chargeLate({ difference, row }) {
      const { account } = row;
      const buildWrites = (overdrawn?: number): TransactWriteItem[] => [
        {
          Update: {
            TableName,
            Key: buildShardKey({ account }),
            ...buildLateCharge(difference, row, overdrawn),
          },
        },
        { Put: { TableName: ledger, Item: encodeLedgerRow(row), ConditionExpression: isNotInLedger } },
        ...countInDaily(stack, [row]),
        ...countInBudgets(stack, [row]),
      ];
      const [refused] = await transact(buildWrites());
      if (refused !== 0) return;
      const [first] = await this.read(account, 1, true);
      if (!first || (await readCloseKind(account, row.id, row.bucket)) !== undefined) return;
      await transactOrThrow([
        ...buildWrites(first.shardCount),
        ...markOtherShards({ account }, first.shardCount),
      ]);
    },
    closedAs: (account, id, shard) => readCloseKind(account, id, bucketOf(id, shard)),
  };
}

/** Half the price of a consistent read, a quarter of a transaction's. */
async function readRoughly(
  client: TableClient,
  TableName: string,
  keys: Attributes[],
): Promise<Attributes[]> {
  const input = { RequestItems: { [TableName]: { Keys: keys } } };
  const { Responses, UnprocessedKeys } = await client.call('BatchGetItem', input, singleAttempt);
  // A shard that was not read must not count as empty.
  if ((UnprocessedKeys?.[TableName]?.Keys?.length ?? 0) > 0) throw new StoreBusy('not all shards were read');
  return Responses?.[TableName] ?? [];
}

export function buildNewShard(
  { account, shardCount = 1, overdraft }: ShardsWrite,
  { shard, moved, plan, minute }: ShardChange,
): Attributes {
  const counts = [...plan].flatMap(([key, { calls }]) =>
    calls === 0 ? [] : [[key, encodeNumber(calls)] as const],
  );
  return {
    ...buildEmptyQuota({ account, shard }),
    available: encodeNumber(moved),
    moved: encodeNumber(moved),
    parts: encodeNumber(shardCount),
    plan: { M: Object.fromEntries(counts) },
    rate: { M: minute ? { [rateKey]: encodeMinute(minute.counted) } : {} },
    ...(overdraft === 'begins' && { overdraft: { BOOL: true } }),
  };
}

export function buildShardChange(
  { shardCount, highestShardCount, overdraft }: ShardsWrite,
  change: ShardChange,
): Change {
  const { seenShardCount = 1, moved, plan, settledBefore } = change;
  const c = new Clauses();
  const zero = c.number('zero', 0);
  const [available, received] = [c.path('available'), c.path('moved')];
  c.conditions.push(hasShardCount(c, seenShardCount));
  const amount = c.number('moved', moved);
  c.set.push(
    `${available} = ${available} + ${amount}`,
    `${received} = if_not_exists(${received}, ${zero}) + ${amount}`,
  );
  const leavesNoDebt = overdraft === 'ends' || overdraft === 'none';
  // The one shard of a joined account may owe.
  if (leavesNoDebt || (moved < 0n && shardCount !== 1))
    c.conditions.push(`${available} >= ${c.number('given', -moved)}`);
  if (overdraft === 'begins') markOverdraft(c);
  if (overdraft === 'none') c.conditions.push(hasNoOverdraft(c));
  if (overdraft === 'ends') c.conditions.push(`attribute_exists(${c.path('overdraft')})`);
  if (overdraft === 'ends' || shardCount === 1) c.remove.push(c.path('overdraft'));
  if (shardCount !== undefined) c.set.push(`${c.path('parts')} = ${c.number('newParts', shardCount)}`);
  if (highestShardCount !== undefined && change.shard === 0)
    c.set.push(`${c.path('made')} = ${c.number('made', highestShardCount)}`);
  for (const [key, { calls, countedMax }] of plan) {
    const count = c.path('plan', key);
    if (calls !== 0)
      c.set.push(`${count} = if_not_exists(${count}, ${zero}) + ${c.number(`calls ${key}`, calls)}`);
    if (!Number.isFinite(countedMax)) continue;
    const max = c.number(`max ${key}`, countedMax);
    c.conditions.push(`(${count} <= ${max} OR attribute_not_exists(${count}))`);
  }
  if (change.minute) setMinute(c, change.minute);
  if (settledBefore !== undefined)
    c.conditions.push(
      `${c.path('settled')} = ${c.number('settled', settledBefore)}`,
      `size(${c.path('open')}) = ${zero}`,
      // No reservation was opened or closed since the read, so the amount is unchanged.
      `${available} = ${c.number('given', -moved)}`,
    );
  return c.expression();
}

function setMinute(c: Clauses, { seen, counted }: NonNullable<ShardChange['minute']>): void {
  const path = c.path('rate', rateKey);
  c.conditions.push(
    seen ? `${path} = ${c.value('seen', encodeMinute(seen))}` : `attribute_not_exists(${path})`,
  );
  c.set.push(`${path} = ${c.value('counted', encodeMinute(counted))}`);
}

const encodeMinute = ({ minute, count, tokens = 0 }: RateCount): AttributeValue => ({
  M: { minute: encodeNumber(minute), count: encodeNumber(count), tokens: encodeNumber(tokens) },
});

export function buildOverdraftMark(shardCount: number): Change {
  const c = new Clauses();
  c.conditions.push(hasShardCount(c, shardCount));
  markOverdraft(c);
  return c.expression();
}

/** @param overdrawn number of shards to mark, if this charge overdraws the first */
export function buildLateCharge(difference: bigint, row: CloseRow, overdrawn?: number): Change {
  const c = new Clauses();
  const amount = c.number('amount', difference);
  const [spent, settled] = [c.path('spent'), c.path('settled')];
  c.conditions.push(hasItem(c));
  if (row.metered) addMetered(c, difference);
  else {
    const available = c.path('available');
    c.set.push(`${available} = ${available} - ${amount}`);
  }
  if (overdrawn !== undefined) {
    c.conditions.push(hasShardCount(c, overdrawn));
    markOverdraft(c);
  } else if (difference > 0n && !row.metered) c.conditions.push(mayTake(c, 0, difference));
  c.set.push(
    `${spent} = ${spent} + ${amount}`,
    `${settled} = ${settled} + ${c.number('one', 1)}`,
    `${c.path('last')} = ${c.value('last', encodeCloseRecord(buildLateRecord(row)))}`,
  );
  return c.expression();
}

const buildLateRecord = ({ id, kind, charge, at }: CloseRow): CloseRecord => ({
  id,
  kind,
  charge,
  at: Math.floor(Date.parse(at) / 1000),
});

export function buildTombstone({ id, entry }: TombstoneWrite): Expression {
  const c = new Clauses();
  c.conditions.push(hasItem(c), isNotOpen(c, id));
  c.set.push(`${c.path('open', id)} = ${c.value('entry', encodeEntry(entry))}`);
  return c.expression();
}

export function buildRenew({ id, entry, until }: RenewWrite): Expression {
  const c = new Clauses();
  c.conditions.push(isOpenAs(c, id, entry));
  const open = c.path('open', id);
  c.set.push(`${open}[${untilIndex}] = ${c.number('until', until)}`);
  return c.expression();
}
