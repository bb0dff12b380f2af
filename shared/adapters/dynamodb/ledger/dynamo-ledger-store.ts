/** Puts rows of `ledger`, and counts them in `daily`. Rows may arrive in any order and repeatedly. */
import {
  PutItemCommand,
  TransactWriteItemsCommand,
  UpdateItemCommand,
  type DynamoDBClient,
  type TransactWriteItem,
} from '@aws-sdk/client-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';
import { inTransactions } from '../../../billing/daily/daily-sums.ts';
import type { CloseRow } from '../../../billing/ledger-row.ts';
import type { LedgerStore } from '../../../relay/ports/stores/ledger-store.ts';
import { Poisoned, StoreBusy } from '../../../relay/ports/stores/store-errors.ts';
import { physicalTableName } from '../../../tables/table-names.ts';
import { conditionalCall, isInvalid } from '../dynamo-client.ts';
import { transactionCall } from '../dynamo-transactions.ts';
import { countInBudgets } from '../budget-counter.ts';
import { addToDaily, countInDaily } from '../daily-attributes.ts';
import { ledgerAttributes } from '../ledger-attributes.ts';

/**
 * States of an id:
 *
 *     absent --any row--> taken
 *     absent --cancelled--> a tombstone's row --settled, released or expired--> taken
 *
 * A settled call's id can also belong to a tombstone that is cancelled later. The tombstone's row must not
 * block the call's own row, whichever arrives first.
 */
const isAbsent = 'attribute_not_exists(id)';
const isTombstone = '#kind = :cancelled';

/** DynamoDB's limit. */
const writesMax = 100;

/** The batch waits for it. */
const minutesMsMax = 1000;

export function dynamoLedgerStore(client: DynamoDBClient, stack: string): LedgerStore {
  const TableName = physicalTableName(stack, 'ledger');
  const putOf = (row: CloseRow) => ({ TableName, Item: ledgerAttributes(row), ...unlessTaken(row) });
  return {
    groups: (rows) => inTransactions(distinct(rows), writesMax),
    async putCounted(rows) {
      let left = [...rows];
      // Each turn drops a row that is taken, so that only rows that are put are counted.
      while (left.length > 0) {
        const puts = left.map((row): TransactWriteItem => ({ Put: putOf(row) }));
        const TransactItems = [...puts, ...countInDaily(stack, left), ...countInBudgets(stack, left)];
        const reply = await transactionCall(() =>
          client.send(new TransactWriteItemsCommand({ TransactItems })),
        );
        if (reply.done) return left;
        if (reply.invalid) throw new Poisoned('ledger: the row is refused', { cause: reply.error });
        const taken = new Set(reply.conditions);
        if (taken.size === 0)
          throw new StoreBusy('The transaction did not go through.', { cause: reply.error });
        left = left.filter((_row, at) => !taken.has(at));
      }
      return left;
    },
    async putUncounted(row) {
      try {
        await conditionalCall(() => client.send(new PutItemCommand(putOf(row))));
      } catch (error) {
        if (isInvalid(error)) throw new Poisoned('ledger: the row is refused', { cause: error });
        throw error;
      }
    },
    async addToMinutes(sums) {
      const abortSignal = AbortSignal.timeout(minutesMsMax);
      const updates = sums.map((sum) => new UpdateItemCommand(addToDaily(stack, sum)));
      await Promise.all(updates.map((update) => client.send(update, { abortSignal })));
    },
  };
}

/** A transaction writes no item twice. */
function distinct(rows: readonly CloseRow[]): CloseRow[] {
  const byId = new Map<string, CloseRow>();
  for (const row of rows) {
    const name = `${row.account}\u0000${row.id}`;
    const other = byId.get(name);
    if (other === undefined || other.kind === 'cancelled') byId.set(name, row);
  }
  return [...byId.values()];
}

const unlessTaken = ({ kind }: CloseRow) =>
  kind === 'cancelled'
    ? { ConditionExpression: isAbsent }
    : {
        ConditionExpression: `${isAbsent} OR ${isTombstone}`,
        ExpressionAttributeNames: { '#kind': 'kind' },
        ExpressionAttributeValues: marshall({ ':cancelled': 'cancelled' }),
      };
