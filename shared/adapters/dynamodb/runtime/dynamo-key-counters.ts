/** Counters of keys in the table `runtime`: `rate#<key>#<minute>` and `budget#<key>#<period>`. */
import type { UpdateItemCommandInput } from '@aws-sdk/client-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';
import type { BudgetUse } from '../../../billing/budget-use.ts';
import type { KeyCounters } from '../../../relay/ports/stores/key-counters.ts';
import { physicalTableName } from '../../../tables/table-names.ts';
import type { Attributes } from '../attributes.ts';
import { budgetChange, budgetCounterId } from '../budget-counter.ts';
import { quotaCall, type ConditionalReply, type TableClient } from '../dynamo-client.ts';

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
      Key: marshall({ id }),
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
        ExpressionAttributeValues: marshall({
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
          ...marshall({ ':left': most - amount, ':zero': 0, ':hold': hold.name }),
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
