/**
 * What few calls need of the quota store: several parts at once, and the ledger. Loaded by the first call that does.
 * A transaction whose conditions hold for one moment moves money and counts between parts, so sums stay.
 */
import { randomUUID } from 'node:crypto';
import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';
import type { CloseKind } from '../../../billing/quota-item.ts';
import type { CloseWrite, PartOfAccount } from '../../../billing/quota-writes.ts';
import type { QuotaStore } from '../../../relay/ports/stores/quota-store.ts';
import { StoreBusy } from '../../../relay/ports/stores/store-errors.ts';
import { physicalTableName } from '../../../tables/table-names.ts';
import type { Attributes } from '../attributes.ts';
import { countInBudgets } from '../budget-counter.ts';
import { countInDaily } from '../daily-attributes.ts';
import { quotaCall, type TableClient } from '../dynamo-client.ts';
import { readAsOfOneMoment, transactionCall } from '../dynamo-transactions.ts';
import { ledgerAttributes } from '../ledger-attributes.ts';
import { partsItem } from '../account-parts.ts';
import { partKey } from './quota-attributes.ts';
import { changeExpression, createdPart, lateExpression, markExpression } from './parts-expressions.ts';
import { closeExpression } from './quota-expressions.ts';
import { quotaOf } from './quota-attributes.ts';

export interface QuotaTransactions extends Pick<QuotaStore, 'read' | 'move' | 'chargeLate' | 'closedAs'> {
  /** A close that overdraws one of so many parts, and the mark on all of them. */
  closeOverdrawn(write: CloseWrite, parts: number): Promise<void>;
}

/** Its caller repeats. */
const once = { attempts: 1 };
const isNotInLedger = 'attribute_not_exists(id)';

export function quotaTransactions(client: TableClient, stack: string): QuotaTransactions {
  const TableName = physicalTableName(stack, 'quotas');
  const ledger = physicalTableName(stack, 'ledger');

  /** @returns which of the writes were refused by their conditions; none: all were done */
  const transact = async (TransactItems: TransactWriteItem[]): Promise<number[]> => {
    const reply = await quotaCall(() =>
      transactionCall(() =>
        client.call('TransactWriteItems', { TransactItems, ClientRequestToken: randomUUID() }, once),
      ),
    );
    if (!reply.done || reply.reply.done) return [];
    const { conditions, invalid, error } = reply.reply;
    if (invalid) throw error;
    if (conditions.length === 0) throw new StoreBusy('The transaction met another write.', { cause: error });
    return conditions;
  };

  const unlessChanged = async (writes: TransactWriteItem[]): Promise<void> => {
    if ((await transact(writes)).length > 0) throw new StoreBusy('The account changed meanwhile.');
  };

  /** The mark of an overdraft on all parts but the one that the write changes. */
  const marksBeside = ({ account, part = 0 }: PartOfAccount, parts: number): TransactWriteItem[] =>
    Array.from({ length: parts }, (_, other) => other)
      .filter((other) => other !== part)
      .map((other) => ({
        Update: { TableName, Key: partKey({ account, part: other }), ...markExpression(parts) },
      }));

  return {
    async read(account, parts, exact) {
      const keys = Array.from({ length: parts }, (_, part) => partKey({ account, part }));
      const items = exact
        ? await readExactly(client, TableName, keys)
        : await readRoughly(client, TableName, keys);
      return items.map(quotaOf).toSorted((a, b) => a.part - b.part);
    },
    async move(write) {
      const { account, parts, changes } = write;
      const items = changes.map((change): TransactWriteItem => {
        if (change.seenParts === undefined)
          return {
            Put: {
              TableName,
              Item: createdPart(write, change),
              ConditionExpression: 'attribute_not_exists(account)',
            },
          };
        const Key = partKey({ account, part: change.part });
        return { Update: { TableName, Key, ...changeExpression(write, change) } };
      });
      if (parts !== undefined)
        items.push({
          Put: { TableName: physicalTableName(stack, 'runtime'), Item: partsItem(account, parts) },
        });
      return (await transact(items)).length === 0;
    },
    async closeOverdrawn(write, parts) {
      await unlessChanged([
        { Update: { TableName, Key: partKey(write), ...closeExpression(write, parts) } },
        ...marksBeside(write, parts),
      ]);
    },
    async chargeLate({ difference, row }) {
      const { account } = row;
      const writes = (overdrawn?: number): TransactWriteItem[] => [
        { Update: { TableName, Key: partKey({ account }), ...lateExpression(difference, row, overdrawn) } },
        { Put: { TableName: ledger, Item: ledgerAttributes(row), ConditionExpression: isNotInLedger } },
        ...countInDaily(stack, [row]),
        ...countInBudgets(stack, [row]),
      ];
      const [refused] = await transact(writes());
      if (refused !== 0) return;
      const [first] = await this.read(account, 1, true);
      if (!first || (await this.closedAs(account, row.id)) !== undefined) return;
      await unlessChanged([...writes(first.parts), ...marksBeside({ account }, first.parts)]);
    },
    async closedAs(account, id) {
      const input = { TableName: ledger, Key: marshall({ account, id }), ConsistentRead: true };
      const reply = await quotaCall(() => client.call('GetItem', input, once));
      return reply.done ? (reply.reply.Item?.['kind']?.S as CloseKind | undefined) : undefined;
    },
  };
}

/** All items as of one moment. */
async function readExactly(
  client: TableClient,
  TableName: string,
  keys: Attributes[],
): Promise<Attributes[]> {
  const TransactItems = keys.map((Key) => ({ Get: { TableName, Key } }));
  const reply = await quotaCall(() =>
    readAsOfOneMoment(() => client.call('TransactGetItems', { TransactItems }, once)),
  );
  const { Responses = [] } = reply.done ? reply.reply : {};
  return Responses.flatMap(({ Item }) => (Item ? [Item] : []));
}

/** At half the price of a consistent read, and a quarter of that of a transaction. */
async function readRoughly(
  client: TableClient,
  TableName: string,
  keys: Attributes[],
): Promise<Attributes[]> {
  const input = { RequestItems: { [TableName]: { Keys: keys } } };
  const reply = await quotaCall(() => client.call('BatchGetItem', input, once));
  const { Responses, UnprocessedKeys } = reply.done ? reply.reply : {};
  // A part that was not read is not a part without money.
  if ((UnprocessedKeys?.[TableName]?.Keys?.length ?? 0) > 0) throw new StoreBusy('not all parts were read');
  return Responses?.[TableName] ?? [];
}
