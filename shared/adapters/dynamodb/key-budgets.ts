/** Counters of keys in the table `runtime`: `rate#<key>#<minute>` and `budget#<key>#<period>`. */
import type { UpdateItemCommandInput, TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { type BudgetUse, budgetUseOf, ledgerTimeMs, type CloseRow } from '../../billing/ledger-row.ts';
import type { KeyCounters } from '../../relay/ports/runtime-stores.ts';
import { physicalTableName } from '../../tables/table-names.ts';
import {
  attributesOf,
  type Attributes,
  quotaCall,
  type ConditionalReply,
  type TableClient,
} from './table-client.ts';

const minuteSeconds = 60;
/** A minute's counter is kept a little longer, because clocks of environments differ. */
const rateKeptSeconds = 5 * minuteSeconds;

/** The reserve that needs a count repeats within its own time. */
const once = { attempts: 1 };

export function dynamoKeyCounters(client: TableClient, stack: string): KeyCounters {
  const TableName = physicalTableName(stack, 'runtime');

  const update = async (
    id: string,
    write: Omit<UpdateItemCommandInput, 'TableName' | 'Key'>,
  ): Promise<ConditionalReply<Attributes>> => {
    const input: UpdateItemCommandInput = {
      TableName,
      Key: attributesOf({ id }),
      ReturnValues: 'UPDATED_NEW',
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
      ...write,
    };
    const reply = await quotaCall(() => client.call('UpdateItem', input, once));
    return reply.done ? { done: true, reply: reply.reply.Attributes ?? {} } : reply;
  };

  return {
    async countCall(key, minute, max) {
      const reply = await update(`rate#${key}#${minute}`, {
        UpdateExpression: 'ADD calls :one SET #expires = :expires',
        ConditionExpression: 'attribute_not_exists(calls) OR calls < :max',
        ExpressionAttributeNames: { '#expires': 'expires' },
        ExpressionAttributeValues: attributesOf({
          ':one': 1,
          ':max': max,
          ':expires': minute * minuteSeconds + rateKeptSeconds,
        }),
      });
      return reply.done ? Number(reply.reply['calls']?.N) : undefined;
    },
    async hold(hold, amount, most) {
      const change = budgetChange(hold.expires, { used: amount, running: 1 });
      const reply = await update(budgetCounterId(hold), {
        UpdateExpression: `${change.UpdateExpression}, #hold = :hold`,
        ConditionExpression: `(used <= :left OR (attribute_not_exists(used) AND :left >= :zero))
          AND (attribute_not_exists(#hold) OR #hold <> :hold)`,
        ExpressionAttributeNames: { ...change.ExpressionAttributeNames, '#hold': 'hold' },
        ExpressionAttributeValues: {
          ...change.ExpressionAttributeValues,
          ...attributesOf({ ':left': most - amount, ':zero': 0, ':hold': hold.name }),
        },
      });
      if (reply.done) return { done: true, ...useOf(reply.reply) };
      // An earlier try, whose reply was lost, was applied.
      return { done: reply.item?.['hold']?.S === hold.name, ...useOf(reply.item) };
    },
    async change(counter, by) {
      await update(budgetCounterId(counter), budgetChange(counter.expires, by));
    },
  };
}

const useOf = (item: Attributes = {}): BudgetUse => ({
  used: BigInt(item['used']?.N ?? '0'),
  running: Number(item['running']?.N ?? '0'),
});

// The counter of a key's budget: its item in `runtime`, and the writes that change it.

export const budgetCounterId = ({ key, period }: { key: string; period: string }): string =>
  `budget#${key}#${period}`;

/**
 * Adds to what is used, and to the number of calls that hold some. Creates the counter if there is none.
 * `expires`: Unix seconds; holds for a counter that has no time yet.
 */
export const budgetChange = (
  expires: number,
  { used, running }: BudgetUse,
): Pick<
  UpdateItemCommandInput,
  'UpdateExpression' | 'ExpressionAttributeNames' | 'ExpressionAttributeValues'
> => ({
  UpdateExpression: 'ADD used :used, running :running SET #expires = if_not_exists(#expires, :expires)',
  ExpressionAttributeNames: { '#expires': 'expires' },
  ExpressionAttributeValues: attributesOf({ ':used': used, ':running': running, ':expires': expires }),
});

/** A month, and some days in which its last calls end. */
const keptSeconds = 40 * 24 * 60 * 60;

/** For the transaction that puts these ledger rows: what the calls did not spend of their budgets becomes free. */
export function countInBudgets(stack: string, rows: readonly CloseRow[]): TransactWriteItem[] {
  const changes = new Map<string, { use: BudgetUse; expires: number }>();
  for (const row of rows) {
    if (row.budget === undefined) continue;
    const id = budgetCounterId({ key: row.key, period: row.budget });
    const { used, running } = budgetUseOf(row);
    const { use } = changes.get(id) ?? { use: { used: 0n, running: 0 } };
    const expires = Math.ceil(ledgerTimeMs(row) / 1000) + keptSeconds;
    changes.set(id, { use: { used: use.used + used, running: use.running + running }, expires });
  }
  return [...changes].map(([id, { use, expires }]) => ({
    Update: {
      TableName: physicalTableName(stack, 'runtime'),
      Key: attributesOf({ id }),
      ...(budgetChange(expires, use) as { UpdateExpression: string }),
    },
  }));
}
